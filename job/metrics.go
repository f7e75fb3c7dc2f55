package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/train"
)

// Metrics are figures of quality, the most important first. As JSON they are an
// object.
type Metrics []train.Metric

// At returns the figure of a name, NaN if there is none.
func (m Metrics) At(name string) float64 {
	for _, x := range m {
		if x.Name == name {
			return x.Value
		}
	}
	return math.NaN()
}

// MarshalJSON keeps the order.
func (m Metrics) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, x := range m {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(x.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON keeps the order too.
func (m *Metrics) UnmarshalJSON(b []byte) error {
	*m = nil
	var values map[string]float64
	if err := json.Unmarshal(b, &values); err != nil {
		return err
	}
	// A flat object of numbers: after the brace, names and numbers take turns.
	d := json.NewDecoder(bytes.NewReader(b))
	for range len(values) {
		var name string
		for name == "" {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = t.(string)
		}
		*m = append(*m, train.Metric{Name: name, Value: values[name]})
	}
	return nil
}
