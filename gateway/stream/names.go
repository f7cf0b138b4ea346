package stream

import (
	"fmt"
	"math/bits"
	"strings"

	"exchange/actors/directory"
	"exchange/gateway/socketio"
)

// A topic is the number of a channel: its family times the number of pairs, plus its pair's index.
// status is last.
type topic uint32

// answers is the tag of success and error messages, which belong to no channel.
const answers = ^uint32(0)

// A name is the name of one channel, or of a family's channels of all pairs.
type name struct {
	text   string
	family family
	all    bool
	topic  topic // unless all
}

// names resolves the names of all channels.
type names struct {
	pairs  []*directory.Pair
	places map[string]int // index in pairs, by name
}

func newNames(pairs []*directory.Pair) *names {
	n := &names{pairs: pairs, places: make(map[string]int, len(pairs))}
	for i, p := range pairs {
		n.places[p.Name] = i
	}
	return n
}

func (n *names) topics() int { return int(n.topic(status, 0)) + 1 }

func (n *names) topic(f family, place int) topic { return topic(int(f)*len(n.pairs) + place) }

func (n *names) familyOf(t topic) family { return family(int(t) / len(n.pairs)) }

// placeOf returns the index of a channel's pair; 0 for status.
func (n *names) placeOf(t topic) int { return int(t) % len(n.pairs) }

func (n *names) policyOf(t topic) socketio.Policy { return kinds[n.familyOf(t)].policy }

// longestShown is the maximum number of bytes of an unknown name repeated in an answer.
const longestShown = 64

// parse finds the channel with the longest matching name. The error's text is for the client.
func (n *names) parse(text string) (name, error) {
	best, pair := families, ""
	for f := range families {
		plain := kinds[f].plain
		rest, isPrefix := strings.CutPrefix(text, plain)
		if isPrefix && plain != "" && (rest == "" || rest[0] == '.') &&
			(best == families || len(plain) > len(kinds[best].plain)) {
			best, pair = f, rest
		}
	}
	switch {
	case best == status && pair == "":
		return name{text: text, family: status, topic: n.topic(status, 0)}, nil
	case best == status:
	case best != families && pair == "":
		return name{text: text, family: best, all: true}, nil
	case best != families:
		return n.ofPair(text, best, pair[1:])
	}
	if pair, ok := strings.CutPrefix(text, bookPrefix); ok {
		return n.ofPair(text, book, pair)
	}
	return name{}, fmt.Errorf("unknown channel")
}

func (n *names) ofPair(text string, f family, pair string) (name, error) {
	place, ok := n.places[pair]
	if !ok {
		return name{}, fmt.Errorf("unknown pair")
	}
	return name{text: text, family: f, topic: n.topic(f, place)}, nil
}

// number returns the number of a name: its channel's topic, or a number beyond all topics.
func (n *names) number(wanted *name) topic {
	if wanted.all {
		return n.numberOfAll(wanted.family)
	}
	return wanted.topic
}

func (n *names) numberOfAll(f family) topic { return topic(n.topics()) + topic(f) }

// A target is a name in a client's request.
type target struct {
	name  name  // with the client's text, even if unknown
	err   error // for the client
	again bool  // a repetition of a name, which touches no channels
}

// targets parses the names of a request. touched is the number of the request's channels, with each
// unknown name as one.
func (n *names) targets(texts []string) (list []target, touched int) {
	list = make([]target, len(texts))
	first := make(map[string]int, len(texts))
	for i, text := range texts {
		w := &list[i]
		if at, again := first[text]; again && i < maxNames {
			*w = list[at]
			w.again = true
			continue
		}
		first[text] = i
		if w.name, w.err = n.parse(text); i == maxNames {
			w.err = errRequest
		}
		w.name.text = text
		if touched++; w.err == nil && w.name.all {
			touched += len(n.pairs) - 1
		}
	}
	return list, touched
}

// mostTouched returns an upper bound for one request: all pairs of each family, and maxNames.
func (n *names) mostTouched() int { return n.topics() + maxNames }

// A set is a set of topics, in parts of setWords words. An empty part takes no memory, because few
// clients use channels of all kinds.
type set []*[setWords]uint64

const (
	setWords = 8
	setPart  = 64 * setWords // topics in a part
)

func (n *names) newSet() set { return make(set, (n.topics()+setPart-1)/setPart) }

// word returns the bits of topics 64*i to 64*i+63.
func (s set) word(i topic) uint64 {
	if part := s[i/setWords]; part != nil {
		return part[i%setWords]
	}
	return 0
}

func (s set) has(t topic) bool { return s.word(t/64)&(1<<(t%64)) != 0 }

func (s set) add(t topic) {
	part := &s[t/setPart]
	if *part == nil {
		*part = new([setWords]uint64)
	}
	(*part)[t/64%setWords] |= 1 << (t % 64)
}

func (s set) remove(t topic) {
	if part := s[t/setPart]; part != nil {
		part[t/64%setWords] &^= 1 << (t % 64)
	}
}

// hasAll reports whether count topics from first on are in the set.
func (s set) hasAll(first topic, count int) bool {
	for t, end := first, first+topic(count); t < end; {
		from := t % 64
		word := min(end-t, 64-from)
		if mask := (^uint64(0) >> (64 - word)) << from; s.word(t/64)&mask != mask {
			return false
		}
		t += word
	}
	return true
}

func (s set) len() (n int) {
	for _, part := range s {
		if part == nil {
			continue
		}
		for _, w := range part {
			n += bits.OnesCount64(w)
		}
	}
	return n
}

// all yields the topics of the set, which may change meanwhile: a removed topic may still be
// yielded.
func (s set) all(yield func(topic) bool) {
	for i := range topic(len(s) * setWords) {
		for w := s.word(i); w != 0; w &= w - 1 {
			if !yield(i*64 + topic(bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}
