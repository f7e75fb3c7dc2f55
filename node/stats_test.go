package node

import (
	"reflect"
	"testing"
	"time"
)

// Whoever adds a field to Stats decides here what becomes of it.
func TestStatsAddUpAndSubtract(t *testing.T) {
	kept := map[string]bool{"MaxHops": true, "LeadMs": true, "Leads": true, "Owned": true, "Replicas": true, "Bytes": true, "Window": true}
	var s Stats
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.CanUint():
			f.SetUint(uint64(i + 1))
		case f.CanInt():
			f.SetInt(int64(i + 1))
		case f.CanFloat():
			f.SetFloat(float64(i + 1))
		}
	}
	sum := s
	sum.Add(s)
	if diff := sum.Sub(s); sum.RoundTime != 2*s.RoundTime || s.RoundTime == time.Duration(0) {
		t.Errorf("%v and the same is %v", s.RoundTime, sum.RoundTime)
	} else {
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			got, want := reflect.ValueOf(diff).Field(i).Interface(), v.Field(i).Interface()
			if kept[name] {
				want = reflect.ValueOf(sum).Field(i).Interface()
			}
			if got != want {
				t.Errorf("%s: twice less once is %v, want %v", name, got, want)
			}
		}
	}
}
