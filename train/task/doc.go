// Package task offers every task of package train in one form, so that a job, an
// experiment or a command can run any of them without knowing which.
//
// A task is two things. Its [Settings] are a plain struct that says what is
// trained and on what data; they have defaults, travel as JSON, and are looked
// up by name ([New], [Names]). [Settings.Load] reads or generates the data and
// returns a [Task], which knows its tables and samplers, trains, evaluates and
// exports.
//
// # Adding a task
//
// Write the settings, their Load, and a type that embeds [Trained] and says what is
// left. An init function calls [Register]. Nothing else lists tasks. This can be done
// in any program: its tables bring their update rules and filters along as values, and
// package job/cli makes a command of it whose processes are the nodes. The folder
// examples/ctr has such a program, in a module of its own. The tasks of Godwit have
// one file here each, beside the mathematics in a package of its own below train.
package task
