package kge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
)

// A model is the mathematics of a kind of embedding. It scores a triple by
// comparing a *query*, made of one entity and the relation, with the other
// entity's embedding: by their dot product, or by their distance. So one
// matrix product scores many queries against many candidates.
//
// The object query of (s, r, ?) is made from s, the subject query of (?, r, o)
// from o; both give the triple the same score. Slices of entities and queries
// have the entity length, those of relations the relation length.
type model interface {
	// name is how a command line calls the model.
	name() string
	// layout says what the floats of entities and of relations are, and how NumPy
	// computes the score of (s, r, o) of them.
	layout() layout
	// check looks at the entity length.
	check(dim int) error
	// relationDim is the length of a relation.
	relationDim(dim int) int
	// relationInit starts a relation.
	relationInit(std float32) godwit.Init
	// distance says that the score is −‖query − candidate‖, not the dot product.
	distance() bool
	// query writes the query of entity e and relation r: for objects, or for
	// subjects.
	query(q, e, r []float32, subjects bool)
	// backward adds to ge and gr the gradients towards e and r, given gq, that
	// towards the query.
	backward(ge, gr, e, r, gq []float32, subjects bool)
}

// A layout describes an exported model for people.
type layout struct{ entity, relation, score string }

// complexLayout is that of complex vectors.
const complexLayout = "real parts, then as many imaginary parts: the complex vector is x[:, :dim//2] + 1j*x[:, dim//2:]"

// A factorizer is a model that the N3 regularizer is for: one that factorizes
// the tensor of all triples. Of distances it would make smaller ones, which are
// other scores.
type factorizer interface {
	// n3 adds w times the gradient of Σ|x|³ to g, for an entity or relation x.
	n3(g, x []float32, w float32)
}

var models = []model{complEx{}, distMult{}, rescal{}, transE{}, rotatE{}}

// Models returns the names of the models.
func Models() []string {
	var names []string
	for _, m := range models {
		names = append(names, m.name())
	}
	return names
}

func modelNamed(name string) (model, error) {
	i := slices.IndexFunc(models, func(m model) bool { return m.name() == strings.ToLower(name) })
	if i < 0 {
		return nil, fmt.Errorf("kge: no model is called %q, want one of %s", name, strings.Join(Models(), ", "))
	}
	return models[i], nil
}

// evenDim is the check of models whose entities are complex vectors.
func evenDim(name string, dim int) error {
	if dim%2 != 0 {
		return fmt.Errorf("kge: %s needs an even dimension for its pairs of real and imaginary parts, got %d", name, dim)
	}
	return nil
}
