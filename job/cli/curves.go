package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/godwit-ps/godwit/data/atomicfile"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/telemetry/curve"
	"github.com/godwit-ps/godwit/train"
)

// curves writes the learning curves of runs while they are trained. What cannot be written is told once, and
// the runs go on.
type curves struct {
	plot  string // file of a picture; empty: none
	board string // folder for TensorBoard; empty: none

	task  string
	runs  []string // names of the runs, in their order
	all   []curve.Curve
	files *curve.Board // of the last run
	err   error        // the first that writing met
}

func (c *curves) flags(g Group) {
	g.StringVar(&c.plot, "plot", "", "`file` to write the learning curve to, as a picture (SVG), after each epoch")
	g.StringVar(&c.board, "tensorboard", "", "`folder` to write loss and metrics to for TensorBoard, in a folder of the run's name")
}

// check finds out, before anything is trained, whether the curves can be written: to a file that is new, or a picture already, and to a folder.
// A symbolic link is followed.
func (c *curves) check() error {
	if c.plot != "" {
		if err := c.checkPlot(); err != nil {
			return fmt.Errorf("--plot %s: %w", c.plot, err)
		}
	}
	if c.board == "" {
		return nil
	}
	err := os.MkdirAll(c.board, 0o777)
	if err == nil {
		err = writable(filepath.Join(c.board, "events"))
	}
	if err != nil {
		return fmt.Errorf("--tensorboard %s: %w", c.board, err)
	}
	return nil
}

func (c *curves) checkPlot() error {
	f, err := os.Stat(c.plot)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writable(c.plot)
	case err != nil:
		return err
	case f.IsDir():
		return errors.New("it is a folder: want a file, such as curve.svg in it")
	case !f.Mode().IsRegular():
		return errors.New("it is not a regular file: choose another one")
	}
	if c.plot, err = filepath.EvalSymlinks(c.plot); err != nil {
		return err
	}
	if f.Size() > 0 {
		if err := isPicture(c.plot); err != nil {
			return err
		}
	}
	return writable(c.plot)
}

// isPicture reports why a file is none, by its begin: it may be large.
func isPicture(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // it is only read
	b, err := io.ReadAll(io.LimitReader(f, 512))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("<svg")) {
		return errors.New("it holds something else than a picture (SVG), which would be lost: choose another file, or move it away")
	}
	return nil
}

// writable reports why a file cannot be written in the folder of a path.
func writable(path string) error {
	f, err := atomicfile.Create(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s", filepath.Dir(path))
	case err == nil:
		f.Abort()
	}
	return err
}

// event takes note of an event, and returns why it could not be written, the first time.
func (c *curves) event(e job.Event) error {
	if c.plot == "" && c.board == "" {
		return nil
	}
	had := c.err != nil
	if err := c.take(e); err != nil && c.err == nil {
		c.err = err
	}
	if had {
		return nil
	}
	return c.err
}

func (c *curves) take(e job.Event) error {
	switch {
	case e.Start != nil:
		return c.begin(e)
	case len(c.all) == 0:
		return nil // no run has begun
	case e.Epoch != nil:
		c.at(e.Epoch.Epoch).Loss = e.Epoch.Loss
		err := c.scalar("loss", e.Epoch.Epoch, e.Time, e.Epoch.Loss)
		speed := float64(e.Epoch.Items) / max(e.Epoch.Seconds, 1e-9)
		return errors.Join(err, c.scalar("items per second", e.Epoch.Epoch, e.Time, speed), c.draw())
	case e.Evaluation != nil:
		return c.evaluated(e)
	case e.Result != nil:
		var errs []error
		for _, m := range e.Result.Test {
			errs = append(errs, c.scalar("test/"+m.Name, e.Result.Epochs, e.Time, m.Value))
		}
		return errors.Join(append(errs, c.draw(), c.close())...)
	}
	return nil
}

// begin begins the curve of a run.
func (c *curves) begin(e job.Event) error {
	c.runs, c.all = append(c.runs, e.Run), append(c.all, curve.Curve{Name: e.Policy})
	err := c.close() // of a run that failed
	if c.board != "" {
		var berr error
		c.files, berr = curve.NewBoard(filepath.Join(c.board, e.Run), e.Time)
		err = errors.Join(err, berr)
	}
	return err
}

// evaluated takes the metrics; the first of the validation, or the first of all, is that of the picture.
func (c *curves) evaluated(e job.Event) error {
	ms := e.Evaluation.Metrics
	var errs []error
	for _, m := range ms {
		split := m.Split
		if split == "" {
			split = "test"
		}
		errs = append(errs, c.scalar(split+"/"+m.Name, e.Evaluation.Epoch, e.Time, m.Value))
	}
	now := &c.all[len(c.all)-1]
	if e.Evaluation.Epoch > 0 && len(ms) > 0 {
		i := max(0, slices.IndexFunc(ms, func(m train.Metric) bool { return m.Split == "valid" }))
		if now.Metric == "" {
			now.Metric = ms[i].Label()
		}
		c.at(e.Evaluation.Epoch).Value = ms[i].Value
	}
	return errors.Join(append(errs, c.draw())...)
}

// at returns the point of an epoch of the last run.
func (c *curves) at(epoch int) *curve.Point {
	now := &c.all[len(c.all)-1]
	if n := len(now.Points); n == 0 || now.Points[n-1].Epoch != epoch {
		now.Points = append(now.Points, curve.Point{Epoch: epoch, Loss: math.NaN(), Value: math.NaN()})
	}
	return &now.Points[len(now.Points)-1]
}

func (c *curves) scalar(name string, step int, at time.Time, value float64) error {
	if c.files == nil {
		return nil
	}
	return c.files.Scalar(name, int64(step), at, value)
}

// draw writes the picture anew.
func (c *curves) draw() error {
	if c.plot == "" {
		return nil
	}
	title := c.task
	if len(c.all) == 1 {
		title = fmt.Sprintf("%s, run %s, policy %s", c.task, c.runs[0], c.all[0].Name)
	}
	return atomicfile.Write(c.plot, func(w io.Writer) error { return curve.SVG(w, title, c.all) })
}

// close ends the file for TensorBoard.
func (c *curves) close() error {
	if c.files == nil {
		return nil
	}
	f := c.files
	c.files = nil
	return f.Close()
}
