package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/godwit-ps/godwit/train"
)

// Metrics are figures of quality, the most important first. As JSON they are an
// object, in which a figure that is no finite number is null.
type Metrics []train.Metric

// onTest is the split of a metric that names none.
const onTest = "test"

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
		value := []byte("null")
		if !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
			if value, err = json.Marshal(x.Value); err != nil {
				return nil, err
			}
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON keeps the order too.
func (m *Metrics) UnmarshalJSON(b []byte) error {
	*m = nil
	var values map[string]*float64
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
		value := math.NaN()
		if v := values[name]; v != nil {
			value = *v
		}
		*m = append(*m, train.Metric{Name: name, Value: value})
	}
	return nil
}

// SplitMetrics are metrics by the split of the data that they were measured on. As
// JSON they are an object of Metrics by split: "valid", "train" or "test".
type SplitMetrics []train.Metric

// bySplit divides the metrics by split, in their order.
func (s SplitMetrics) bySplit() (splits []string, ms map[string]Metrics) {
	ms = map[string]Metrics{}
	for _, m := range s {
		split := m.Split
		if split == "" {
			split = onTest
		}
		if ms[split] == nil {
			splits = append(splits, split)
		}
		m.Split = ""
		ms[split] = append(ms[split], m)
	}
	return splits, ms
}

// MarshalJSON keeps the order.
func (s SplitMetrics) MarshalJSON() ([]byte, error) {
	splits, ms := s.bySplit()
	b := []byte{'{'}
	for i, split := range splits {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(split)
		if err != nil {
			return nil, err
		}
		m, err := ms[split].MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), m...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON keeps the order within a split; splits are in that of their names.
func (s *SplitMetrics) UnmarshalJSON(b []byte) error {
	*s = nil
	var all map[string]Metrics
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for _, split := range slices.Sorted(maps.Keys(all)) {
		for _, m := range all[split] {
			if m.Split = split; split == onTest {
				m.Split = ""
			}
			*s = append(*s, m)
		}
	}
	return nil
}
