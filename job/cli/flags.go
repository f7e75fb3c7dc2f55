package cli

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-ps/godwit/coord/etcd/server"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/internal/named"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A Group is flags that stand together in a command's help.
type Group struct {
	title string
	*pflag.FlagSet
}

// NewGroup returns a group without flags.
func NewGroup(title string) Group {
	g := Group{title, pflag.NewFlagSet(title, pflag.ContinueOnError)}
	g.SortFlags = false
	return g
}

// with adds flags to the group; add may be nil.
func (g Group) with(add func(Group)) {
	if add != nil {
		add(g)
	}
}

// Sampling adds the choice of a scheme of package sampling, or of a level.
func (g Group) Sampling(name *string) {
	var schemes, levels []string
	for _, s := range sampling.Schemes() {
		schemes = append(schemes, s.Name())
	}
	for _, l := range sampling.Levels() {
		levels = append(levels, l.String())
	}
	g.StringVar(name, "sampling", *name, fmt.Sprintf("`scheme` by which they are sampled: %s; or how closely they must conform to their distribution: %s",
		strings.Join(schemes, ", "), strings.Join(levels, ", ")))
}

// Rule adds the choice of an update rule and its learning rate. 0 is the one that suits, of which suits says more.
func (g Group) Rule(name *string, lr *float32, suits string) {
	g.StringVar(name, "rule", *name, "update rule, by `name`: "+strings.Join(optim.GradientRules(), ", "))
	g.Float32Var(lr, "lr", *lr, "its learning rate; 0: as suits "+suits)
}

// Policies adds a list of policies by commas, which may have parameters.
func (g Group) Policies(names *[]string, usage string) { g.Var((*policies)(names), "policies", usage) }

// policies is a flag that lists policies. Given again, it lists more.
type policies []string

func (p *policies) String() string     { return strings.Join(*p, ",") }
func (p *policies) Type() string       { return "names" }
func (p *policies) GetSlice() []string { return *p }

func (p *policies) Set(text string) error {
	*p = append(*p, named.List(text)...)
	return nil
}

func (p *policies) Append(name string) error {
	*p = append(*p, name)
	return nil
}

func (p *policies) Replace(names []string) error {
	*p = names
	return nil
}

// inFlags words an error of settings by the flags that set them.
func inFlags(cmd *cobra.Command, err error, settings ...any) error {
	var e *setting.Error
	if !errors.As(err, &e) {
		return err
	}
	for _, s := range settings {
		for _, field := range e.Pointers(s) {
			if name, ok := flagOf(cmd.Flags(), field); ok {
				return Usage(fmt.Errorf("--%s %v: want %s", name, e.Got, e.Want))
			}
		}
	}
	return Usage(err)
}

// worded words the error of a flag's value by what the flag wants, not by what reads it. Other errors stay.
func worded(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	var number *strconv.NumError
	f, want := invalid.GetFlag(), ""
	switch kind := f.Value.Type(); {
	case kind == "bool":
		want = "true or false"
	case kind == "duration":
		want = "a time with its unit, such as 10s or 5m"
	case !errors.As(err, &number):
		return err
	case errors.Is(number, strconv.ErrRange):
		want = "a number nearer to 0, which fits into " + kind
	case strings.HasPrefix(kind, "uint"):
		want = "a whole number, 0 or more"
	case strings.HasPrefix(kind, "int"):
		want = "a whole number"
	default:
		want = "a number"
	}
	return fmt.Errorf("--%s %q: want %s", f.Name, invalid.GetValue(), want)
}

// flagOf returns the flag that sets what field points to. The values of flags are
// such pointers themselves.
func flagOf(flags *pflag.FlagSet, field any) (name string, ok bool) {
	at := reflect.ValueOf(field).Pointer()
	flags.VisitAll(func(f *pflag.Flag) {
		if v := reflect.ValueOf(f.Value); v.Kind() == reflect.Pointer && v.Pointer() == at {
			name, ok = f.Name, true
		}
	})
	return name, ok
}

// givenIn returns a flag that was given and sets what field points to, or a part of it.
func givenIn(flags *pflag.FlagSet, field any) (name string, ok bool) {
	begin := reflect.ValueOf(field).Pointer()
	end := begin + reflect.TypeOf(field).Elem().Size()
	flags.Visit(func(f *pflag.Flag) {
		if v := reflect.ValueOf(f.Value); v.Kind() == reflect.Pointer && begin <= v.Pointer() && v.Pointer() < end {
			name, ok = f.Name, true
		}
	})
	return name, ok
}

// AddGroups gives a command its flags, and a help that shows them by group. The help ends with [ExitCodes], unless
// the command's Long lists codes of its own.
func AddGroups(cmd *cobra.Command, groups ...Group) {
	for _, g := range groups {
		cmd.Flags().AddFlagSet(g.FlagSet)
	}
	helpWithArgs(cmd)
	cmd.SetUsageFunc(func(shown *cobra.Command) error {
		text := "Usage:\n  " + shown.UseLine() + "\n"
		if shown == cmd { // else it is a command below this one, without groups
			text += usage(cmd, groups)
		}
		if !strings.Contains(shown.Long, exitCodesTitle) {
			text += "\n" + ExitCodes + "\n"
		}
		_, err := fmt.Fprint(cmd.OutOrStderr(), text)
		return err
	})
}

// helpWithArgs has an error of a command's arguments say which there are.
func helpWithArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		switch {
		case err == nil:
			return nil
		case !cmd.HasAvailableSubCommands():
			err = fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine())
		}
		return Usage(fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath()))
	}
}

// usage is the help of a command after the line of its usage.
func usage(cmd *cobra.Command, groups []Group) string {
	var b strings.Builder
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(&b, "\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	for _, g := range groups {
		if g.HasFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", g.title, g.FlagUsagesWrapped(100))
		}
	}
	return b.String()
}

// TLSFlags are the flags that say by which files connections are secured.
func TLSFlags(t *tcp.TLSFiles) Group {
	g := NewGroup("Security")
	g.StringVar(&t.Cert, "tls-cert", "", "certificate of this node, PEM `file`; the three files go together")
	g.StringVar(&t.Key, "tls-key", "", "its key, PEM `file`")
	g.StringVar(&t.CA, "tls-ca", "", "authority that signed the certificates of all nodes, PEM `file`")
	g.StringVar(&t.Name, "tls-name", "", "`name` that all certificates carry; without it each must name its node's address")
	return g
}

// TLSOf returns the files if they are given, and nil if none is.
func TLSOf(t *tcp.TLSFiles) (*tcp.TLSFiles, error) {
	switch {
	case *t == tcp.TLSFiles{}:
		return nil, nil
	case t.Cert == "" || t.Key == "" || t.CA == "":
		return nil, fmt.Errorf("--tls-cert, --tls-key and --tls-ca go together")
	}
	return t, nil
}

// serverFiles are the files for the etcd within this process.
func serverFiles(t *tcp.TLSFiles) *server.TLSFiles {
	if t == nil {
		return nil
	}
	return &server.TLSFiles{Cert: t.Cert, Key: t.Key, CA: t.CA}
}

// filled are the flags that say where something is or goes, or how it is secured.
var filled = []string{"data", "export", "checkpoint", "resume", "init-from", "plot", "tensorboard", "profile", "trace",
	"etcd", "run", "listen", "advertise", "etcd-listen", "metrics", "dashboard", "tls-cert", "tls-key", "tls-ca", "tls-name"}

// given refuses such flags with an empty value, as of a variable of the shell that is not set: without them, something else would be read,
// or nothing be kept or secured.
func given(cmd *cobra.Command) error {
	for _, name := range filled {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		list, is := f.Value.(pflag.SliceValue)
		if f.Value.String() == "" || is && len(list.GetSlice()) == 0 {
			return fmt.Errorf("--%s is empty: fill it in, or leave it out", name)
		}
	}
	return nil
}
