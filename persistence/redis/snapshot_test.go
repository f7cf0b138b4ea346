//go:build prove

package redis

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

// An image that is read in several round trips comes back as it was, and each chunk that is gone is
// told.
func TestAnImageOfManyChunksComesBack(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	if err := s.Begin(t.Context(), tok, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), tok, 0, 1, nil); err != nil {
		t.Fatal(err)
	}
	image := make([]byte, 20*64<<10+1)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range image {
		image[i] = byte(random.Uint32())
	}
	if err := s.SaveSnapshot(t.Context(), tok, 1, bytes.NewReader(image)); err != nil {
		t.Fatal(err)
	}
	got, seq, err := persistence.ReadSnapshot(t.Context(), s, 0)
	if err != nil || seq != 1 || !bytes.Equal(got, image) {
		t.Fatalf("%d of %d bytes, sequence %d, %v", len(got), len(image), seq, err)
	}
	c := server.Client()
	ids, err := c.SMembers(t.Context(), s.images()).Result()
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	key := s.image(ids[0])
	for _, i := range []string{"0", "7", "8", "19", "20"} {
		chunk, err := c.HGet(t.Context(), key, i).Result()
		if err == nil {
			err = c.HDel(t.Context(), key, i).Err()
		}
		if err != nil {
			t.Fatal(i, err)
		}
		_, _, err = persistence.ReadSnapshot(t.Context(), s, 0)
		if !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("without chunk %s: error is %v, want ErrCorrupt", i, err)
		}
		if err := c.HSet(t.Context(), key, i, chunk).Err(); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, _, err = persistence.ReadSnapshot(t.Context(), s, 0); err != nil {
		t.Fatal("mended:", err)
	}
}
