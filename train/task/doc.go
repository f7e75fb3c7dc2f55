// Package task offers every task of package train in one form, so that a job, an
// experiment or a command can run any of them.
//
// A task is two things. Its [Settings] are a plain struct that says what is
// trained and on what data; they have defaults, are sent as JSON, and are looked up by
// name ([New], [Names]). [Settings.Load] reads or generates the data and
// returns a [Task], which knows its tables and samplers, trains, evaluates and
// exports.
//
// # Adding a task
//
// Write the settings, their Load, and a type that embeds [Trained] and implements the
// rest of [Task]. Call [Register] in an init function; there is no other list of tasks.
// Any program can do this: its tables hold their update rules and filters as values, and
// package job/cli makes a command of it whose processes are the nodes. The folder
// examples/ctr has such a program, in a module of its own. Each task of Godwit has a
// file here, another one for its trained models (a [Model] is asked and evaluated), and its mathematics in a package of its own below train.
package task
