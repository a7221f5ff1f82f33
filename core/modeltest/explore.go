package modeltest

import (
	"context"
	"sync"
	"time"
)

// Found is what looking at all states came to.
type Found struct {
	States int
	Depth  int // steps of the longest paths that were all followed
	// Whole says that there was nothing more to find within the depth.
	Whole bool
	// Wrong is the rule that was broken first, with the shortest path to it.
	Wrong string
	Path  []string
}

// Explore looks at all states that depth steps reach, breadth first, until the time is
// up. It stops at the first that breaks a rule.
func Explore(ctx context.Context, scope Scope, depth, workers int, limit time.Duration, now func() time.Time) Found {
	began := now()
	seen := map[uint64]bool{newWorld(ctx, scope).hash(): true}
	level := [][]uint8{{}}
	found := Found{States: 1, Whole: true}
	for found.Depth < depth && len(level) > 0 {
		parts := make([][]reached, workers)
		var g sync.WaitGroup
		for k := range workers {
			g.Go(func() {
				for i := k; i < len(level); i += workers {
					if i%64 == k && now().Sub(began) > limit {
						return
					}
					parts[k] = append(parts[k], follow(ctx, scope, level[i])...)
				}
			})
		}
		g.Wait()
		var next [][]uint8
		for _, part := range parts {
			for _, r := range part {
				if r.wrong != "" {
					found.Wrong, found.Path, found.Whole = r.wrong, names(ctx, scope, r.path), false
					return found
				}
				if !seen[r.hash] {
					seen[r.hash] = true
					next = append(next, r.path)
				}
			}
		}
		if now().Sub(began) > limit {
			found.States, found.Whole = len(seen), false
			return found
		}
		found.Depth++
		found.States = len(seen)
		level = next
	}
	return found
}

type reached struct {
	path  []uint8
	hash  uint64
	wrong string
}

// replay plays a path from the beginning.
func replay(ctx context.Context, scope Scope, path []uint8) *world {
	w := newWorld(ctx, scope)
	for _, k := range path {
		w.steps()[k].do()
	}
	return w
}

// follow takes each step that a path can go on with.
func follow(ctx context.Context, scope Scope, path []uint8) []reached {
	var out []reached
	from := replay(ctx, scope, path)
	for k := range from.steps() {
		w := from.clone()
		w.steps()[k].do()
		if w.wrong == "" {
			w.judge()
		}
		longer := append(append(make([]uint8, 0, len(path)+1), path...), uint8(k))
		out = append(out, reached{longer, w.hash(), w.wrong})
	}
	return out
}

// names returns what the steps of a path were.
func names(ctx context.Context, scope Scope, path []uint8) []string {
	w := newWorld(ctx, scope)
	var out []string
	for _, k := range path {
		s := w.steps()[k]
		out = append(out, s.name)
		s.do()
	}
	return out
}
