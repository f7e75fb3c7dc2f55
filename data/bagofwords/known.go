package bagofwords

// Onto returns the documents by another vocabulary, in which number finds
// words, without the words that it lacks. It returns how many occurrences these are.
func (s *Set) Onto(vocabulary []string, number func(name string) (int, bool)) (onto *Set, lacking int) {
	to := make([]int32, len(s.Names))
	for i, name := range s.Names {
		to[i] = -1
		if n, ok := number(name); ok {
			to[i] = int32(n)
		}
	}
	onto = &Set{Names: vocabulary, Starts: []int{0}}
	for i := range s.Len() {
		for _, w := range s.Doc(i) {
			if to[w] < 0 {
				lacking++
				continue
			}
			onto.Words = append(onto.Words, to[w])
		}
		onto.Starts = append(onto.Starts, len(onto.Words))
	}
	return onto, lacking
}
