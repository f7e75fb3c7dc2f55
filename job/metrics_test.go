package job

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func TestMetricsKeepTheirOrderInJSON(t *testing.T) {
	m := Metrics{{Name: "RMSE", Value: 0.94}, {Name: "MAE", Value: 0.74}, {Name: `a "quoted" one`, Value: -1e-9}}
	b, err := json.Marshal(m)
	if err != nil || string(b) != `{"RMSE":0.94,"MAE":0.74,"a \"quoted\" one":-1e-9}` {
		t.Fatalf("%s, %v", b, err)
	}
	var back Metrics
	if err := json.Unmarshal(b, &back); err != nil || !slices.Equal(back, m) {
		t.Errorf("%v came back as %v, %v", m, back, err)
	}
	if m.At("MAE") != 0.74 || !math.IsNaN(m.At("MRR")) {
		t.Errorf("MAE is %v and MRR, which is not there, %v", m.At("MAE"), m.At("MRR"))
	}
}

func TestMetricsAreAnObjectOfNumbers(t *testing.T) {
	for _, text := range []string{`[1]`, `{"a":"b"}`, `{"a":{"b":1}}`, `3`} {
		var m Metrics
		if err := json.Unmarshal([]byte(text), &m); err == nil {
			t.Errorf("%s is read as %v", text, m)
		}
	}
	var m Metrics
	if err := json.Unmarshal([]byte(`{"":1,"a":2,"a":3}`), &m); err != nil || len(m) != 2 {
		t.Errorf("an empty and a repeated name: %v, %v", m, err)
	}
	if err := json.Unmarshal([]byte(`{}`), &m); err != nil || len(m) != 0 {
		t.Errorf("no figures: %v, %v", m, err)
	}
}
