package capi

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// started opens two processes of a run with a worker each.
func started(t *testing.T, of func(rank int, at string) Member) ([]*Cluster, []*Worker) {
	t.Helper()
	cs := runOf(t, 2, of)
	ws := make([]*Worker, len(cs))
	for i, c := range cs {
		_, err := c.Ready(-1)
		must(t, err)
		ws[i] = worker(t, c, 0)
	}
	return cs, ws
}

func served(rank int, at string) Member {
	return Member{Run: "r", Rank: rank, Serve: rank == 0, Coordinator: at, Token: "token"}
}

// result makes a call and waits for it.
func result(w *Worker, call func(time.Duration) (uint64, error)) error {
	op, err := call(0)
	for over := op == 0; !over && err == nil; {
		over, err = w.Wait(op, -1)
	}
	return err
}

// A process that closes waits for the others as long as they work, and serves them. What they all do together ends.
func TestCloseWaitsForOthers(t *testing.T) {
	old := closeTime
	closeTime = 500 * time.Millisecond
	defer func() { closeTime = old }()
	e, err := server.Start(t.Context(), server.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	for name, of := range map[string]func(int, string) Member{
		"one serves": served,
		"etcd": func(rank int, _ string) Member {
			return Member{Run: "r", Rank: rank, Etcd: e.Endpoints(), Token: e.Token()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cs, ws := started(t, of)
			var wg sync.WaitGroup
			for _, w := range ws { // the one that is through sooner closes at once
				wg.Go(func() {
					for range 3 {
						if err := result(w, w.Barrier); err != nil {
							t.Error(err)
						}
					}
					if w == ws[1] {
						_, _ = cs[1].Close(0)
					}
				})
			}
			wg.Wait()
			for what, call := range map[string]func(time.Duration) (uint64, error){"barrier": ws[0].Barrier, "sync_all": ws[0].SyncAll} {
				if err := result(ws[0], call); CodeOf(err) != Lost || !strings.Contains(err.Error(), "rank 1 has closed") {
					t.Errorf("%s without rank 1: %v", what, err)
				}
			}
			if over, err := cs[1].Close(2 * closeTime); over {
				t.Errorf("rank 1 has closed and rank 0 has not: %v", err)
			}
			dst := make([]float32, 4*10)
			done(t, ws[0])(ws[0].Pull(0, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, dst, 0, 0))
			closeAll(t, cs)
		})
	}
}

// A barrier that was given up and made again is one that the process has made, not two.
func TestABarrierMadeAgainCountsOnce(t *testing.T) {
	cs, ws := started(t, served)
	op, err := ws[1].Barrier(0)
	must(t, err)
	if err := ws[1].Cancel(op); err == nil {
		t.Fatal("a barrier without rank 0 has ended")
	}
	again, err := ws[1].Barrier(0)
	must(t, err)
	done(t, ws[0])(ws[0].Barrier(0))
	done(t, ws[1])(again, nil)
	_, err = cs[1].Close(0)
	must(t, err)
	op, err = ws[0].Barrier(20 * time.Second)
	if CodeOf(err) != Lost {
		t.Errorf("the second barrier without rank 1: %v", err)
	}
	if op != 0 {
		_ = ws[0].Cancel(op)
	}
	closeAll(t, cs)
}

// A sync_all and a barrier do not answer each other: both ranks hear of both calls, and can meet again.
func TestDifferentCallsDoNotMeet(t *testing.T) {
	cs, ws := started(t, served)
	for _, calls := range [][2]func(time.Duration) (uint64, error){{ws[0].SyncAll, ws[1].Barrier}, {ws[0].Barrier, ws[1].SyncAll}} {
		errs := make(chan error, 2)
		for i, w := range ws {
			go func() { errs <- result(w, calls[i]) }()
		}
		for range ws {
			if err := <-errs; err == nil || CodeOf(err) != Other || !strings.Contains(err.Error(), "have called barrier") && !strings.Contains(err.Error(), "have called sync-all") {
				t.Errorf("a sync_all with a barrier: %v", err)
			}
		}
		for _, w := range ws {
			go func() { errs <- result(w, w.SyncAll) }()
		}
		for range ws {
			must(t, <-errs)
		}
	}
	closeAll(t, cs)
}

// A SyncAll that was given up before all could meet is one that the process has not made: who waits for it hears that the process has closed. Where it has
// come to the meeting, nobody misses it.
func TestASyncAllGivenUpBeforeItsMeetingIsNotMade(t *testing.T) {
	for _, met := range []bool{false, true} {
		cs, ws := started(t, served)
		for within, come := time.Millisecond, !met; !come; within *= 2 {
			come = !notMet(result(ws[1], func(wait time.Duration) (uint64, error) {
				return ws[1].all(syncAll, wait, func(ctx context.Context) error {
					ctx, end := context.WithTimeout(ctx, within)
					defer end()
					return ws[1].w.SyncAll(ctx)
				})
			}))
		}
		op, err := ws[1].all(syncAll, 0, func(ctx context.Context) error {
			<-ctx.Done()
			return ws[1].w.SyncAll(ctx)
		})
		must(t, err)
		if err := ws[1].Cancel(op); !errors.Is(err, errCancelled) {
			t.Fatalf("a SyncAll without rank 0: %v", err)
		}
		if over, err := cs[1].Close(time.Millisecond); over {
			t.Errorf("rank 1 has closed: %v", err)
		}
		op, err = ws[0].SyncAll(20 * time.Second)
		if op != 0 {
			t.Error("rank 0 waits for what rank 1 has given up")
			_ = ws[0].Cancel(op)
		} else if met != (err == nil) || !met && (CodeOf(err) != Lost || !strings.Contains(err.Error(), "rank 1 has closed")) {
			t.Errorf("rank 1 had come: %v; rank 0: %v", met, err)
		}
		closeAll(t, cs)
	}
}

// A SyncAll that was under way when its process began to close, and is given up before its worker has come to the meeting, is not made either: those who
// wait for it already hear of that as well.
func TestASyncAllGivenUpWhileItsProcessClosesIsNotMade(t *testing.T) {
	for _, waits := range []bool{false, true} {
		cs, ws := started(t, served)
		given, err := ws[1].all(syncAll, 0, func(ctx context.Context) error {
			<-ctx.Done()
			return ws[1].w.SyncAll(ctx)
		})
		must(t, err)
		var op uint64
		if waits {
			op, err = ws[0].SyncAll(0)
			must(t, err)
		}
		if over, err := cs[1].Close(0); over {
			t.Errorf("rank 1 has closed: %v", err)
		}
		for end := time.Now().Add(20 * time.Second); len(cs[0].meetings.without()) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("rank 0 does not hear that rank 1 closes")
			}
		}
		if err := ws[1].Cancel(given); !errors.Is(err, errCancelled) {
			t.Fatalf("a SyncAll without rank 0: %v", err)
		}
		over := false
		if waits {
			over, err = ws[0].Wait(op, 20*time.Second)
		} else {
			op, err = ws[0].SyncAll(20 * time.Second)
			over = op == 0
		}
		if !over {
			t.Error("rank 0 waits for what rank 1 has given up")
			_ = ws[0].Cancel(op)
		} else if CodeOf(err) != Lost || !strings.Contains(err.Error(), "rank 1 has closed") {
			t.Errorf("rank 0: %v", err)
		}
		closeAll(t, cs)
	}
}

// A process that fails waits for nobody, also when it waits already, and the others hear why.
func TestAbandonIsALoss(t *testing.T) {
	for _, failing := range []int{0, 1} {
		cs, ws := started(t, served)
		op, err := ws[1-failing].Barrier(0)
		must(t, err)
		if failing == 1 {
			if over, err := cs[1].Close(time.Millisecond); over {
				t.Errorf("rank 1 has closed: %v", err)
			}
		}
		if over, _ := cs[failing].Abandon("ValueError: a batch", 20*time.Second); !over {
			t.Errorf("rank %d waits for the others", failing)
		}
		_, err = ws[1-failing].Wait(op, -1)
		if CodeOf(err) != Lost {
			t.Errorf("rank %d: %v", 1-failing, err)
		}
		if over, _ := cs[1-failing].Close(20 * time.Second); !over {
			t.Errorf("rank %d waits for one that was lost", 1-failing)
		}
	}
}

// Who asks whether a cluster is ready hears of what has ended its run since.
func TestReadyTellsOfALossLater(t *testing.T) {
	cs, ws := started(t, served)
	if over, _ := cs[1].Abandon("ValueError: a batch", 20*time.Second); !over {
		t.Error("rank 1 waits for rank 0")
	}
	if err := result(ws[0], ws[0].Barrier); CodeOf(err) != Lost {
		t.Fatal(err)
	}
	if ready, err := cs[0].Ready(0); !ready || CodeOf(err) != Lost || !strings.Contains(err.Error(), "node 1") {
		t.Errorf("ready %v, %v", ready, err)
	}
	_, _ = cs[0].Close(20 * time.Second) // its run is over
}
