// Package curve writes the learning curves of runs to files: as a picture ([SVG]) and as TensorBoard
// reads them ([Board]).
package curve
