package ahead

import "github.com/godwit-ps/godwit"

// A returns learns, from samples of the keys, whether a worker's steps use them once in a while or again and again, and whether keys that
// come to the node for short steps are still there when the worker announces them again. To bring a key to the node and to hold it takes several
// times the work of a pull and a push at its owner. That pays where several uses share it: several steps that follow each other, or,
// where nobody else uses the key, all that come. The zero value has learned nothing.
type returns struct {
	relaxed func(godwit.Key) bool // reads of the key may lag ([godwit.Table].Relaxed); nil: those of none may

	last []use // by hash; a key that comes later takes the place of another one

	steps, keys  int // announced,
	sampled      int // … of these keys,
	near         int // … so many were announced for one of the steps just before, too,
	lags         int // … and of these so many are keys whose reads may lag
	judged, gone int // so many came on trial, were used, and were announced again later; and so many of these were elsewhere by then

	stay     bool // those that came were here at their next use
	fleeting bool // steps have many keys, which they use once in a while, and it is not known that these stay
	again    bool // most keys of a step are of those just before,
	steady   bool // … and their reads may lag
}

// A use is for which step a sampled key was announced last.
type use struct {
	key    godwit.Key
	at     godwit.Clock // 0: there was none
	wanted bool         // the key is on trial, and was to come to this node
}

const (
	sampleBits   = 6 // one key in 64 is sampled,
	trialBits    = 9 // … and one in 512 on trial: it comes to the node in any case
	useBits      = 12
	nearSteps    = 8
	enoughJudged = 32  // judged keys for a verdict on whether keys stay,
	enoughUses   = 512 // … and sampled ones for one on how steps use them
	manyKeys     = 256 // of a step: the messages of one step are not small then
	fleetingPart = 16  // by which the length from which steps are long is divided where keys are fleeting,
	steadyTimes  = 16  // … and multiplied where they are steady
	dearTimes    = 4   // by which the length of steps whose values were dear to fetch is multiplied where they are used again and again
)

// sampled reports whether a key is of the sample, and the place of its last use.
func sampled(k godwit.Key) (place int, is bool) {
	h := uint64(k) * 0x9e3779b97f4a7c15
	return int(h >> (64 - sampleBits - useBits) & (1<<useBits - 1)), h>>(64-sampleBits) == 0
}

// onTrial reports whether a key is of those from which it is seen whether keys stay. It is the same for all workers, so that
// these compete for the key.
func onTrial(k godwit.Key) bool { return uint64(k)*0x9e3779b97f4a7c15>>(64-trialBits) == 0 }

// announced takes note of keys for a step; wanted says whether those of the sample are to come to this node. It appends to again
// those that did so before, were used, and are announced again some steps later: they are to be judged.
func (r *returns) announced(keys []godwit.Key, at, clock godwit.Clock, wanted bool, again []godwit.Key) []godwit.Key {
	r.steps++
	r.keys += len(keys)
	for _, k := range keys {
		i, is := sampled(k)
		if !is {
			continue
		}
		if r.last == nil {
			r.last = make([]use, 1<<useBits)
		}
		r.sampled++
		if u := &r.last[i]; u.key == k && u.at > 0 {
			switch {
			case at-u.at <= nearSteps:
				r.near++
				if r.relaxed != nil && r.relaxed(k) {
					r.lags++
				}
			case u.wanted && u.at < clock:
				again = append(again, k)
			}
		}
		r.last[i] = use{k, at, wanted && onTrial(k)}
	}
	return again
}

// judge is told which of the keys that announced returned are elsewhere, or here although no intent wants them, and comes to a verdict if it has seen enough.
func (r *returns) judge(away []bool) {
	r.judged += len(away)
	for _, is := range away {
		if is {
			r.gone++
		}
	}
	once := 2*r.near < r.sampled && r.keys >= manyKeys*r.steps
	switch {
	case r.judged >= enoughJudged:
		r.stay = 4*r.gone < r.judged
		r.judged, r.gone = 0, 0
	case r.sampled < enoughUses:
		return
	}
	r.fleeting, r.again, r.steady = once && !r.stay, 4*r.near >= 3*r.sampled, 4*r.lags >= 3*r.sampled
	r.steps, r.keys, r.sampled, r.near, r.lags = 0, 0, 0, 0, 0
}

// long returns from which length on steps are long, where it is so long for keys that stay. Steps of the length dear had values
// that were dear to fetch; 0: there were none.
func (r *returns) long(usual, dear int64) int64 {
	switch {
	case usual == Never:
	case r.fleeting:
		return usual / fleetingPart
	case r.steady:
		return usual * steadyTimes
	case r.again:
		return max(usual, dearTimes*dear)
	}
	return usual
}
