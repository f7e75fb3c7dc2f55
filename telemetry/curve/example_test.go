package curve_test

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/telemetry/curve"
)

func Example() {
	var b strings.Builder
	err := curve.SVG(&b, "kge", []curve.Curve{{Name: "adaptive", Metric: "valid MRR", Points: []curve.Point{{Epoch: 1, Loss: 6.2, Value: 0.3}, {Epoch: 2, Loss: 3.9, Value: 0.5}}}})
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(b.String(), "adaptive after epoch 2: loss 3.9, valid MRR 0.5"))
	// Output: true
}
