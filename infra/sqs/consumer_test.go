package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/sqs"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// raw returns a client of the emulator, to look on and to interfere.
func raw(t *testing.T) *awssqs.Client {
	t.Helper()
	return awssqs.NewFromConfig(sqstest.Config(sqstest.Endpoint(t)))
}

// until polls until the condition holds, for at most 20 s.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// depth returns how many messages a queue has, hidden ones included.
func depth(t *testing.T, url string) int {
	t.Helper()
	out, err := raw(t).GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		var part int
		if err := json.Unmarshal([]byte(out.Attributes[name]), &part); err != nil {
			t.Fatal(err)
		}
		n += part
	}
	return n
}

// receive returns what one Receive brings within 20 s.
func receive(t *testing.T, c core.Consumer, limit int) []core.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ds, err := c.Receive(ctx, jobs, limit)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func send(t *testing.T, c sqs.Config, msgs []core.Message) {
	t.Helper()
	if n, err := publisher(t, c).Publish(t.Context(), jobs, msgs); n != len(msgs) || err != nil {
		t.Fatalf("Publish took %d: %v", n, err)
	}
}

func TestReceiveMakesFewCalls(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	c := config(front.URL, sqstest.NewQueue(t, nil))
	send(t, c, messages(100))
	cons := consumer(t, c)
	if diff := cmp.Diff(upTo(100), fences(t, cons, 100)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if err := cons.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := map[string]int{"SendMessageBatch": 10, "ReceiveMessage": 10, "DeleteMessageBatch": 10}
	if diff := cmp.Diff(want, front.Counts()); diff != "" {
		t.Errorf("calls for 100 messages (-want +got):\n%s", diff)
	}
}

func TestDoneSharesCallsAndTriesAgain(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	url := sqstest.NewQueue(t, nil)
	c := config(front.URL, url)
	c.Linger = 300 * time.Millisecond
	var mu sync.Mutex
	failures, retried := 0, 0
	front.Set("DeleteMessageBatch", sqstest.FailEntries(func(e sqstest.Entry) string {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case failures == 0:
			failures++
			return "InternalError"
		case e.ID == "0":
			retried++
		}
		return ""
	}))
	send(t, c, messages(24))
	cons := consumer(t, c)
	var ds []core.Delivery
	for len(ds) < 24 {
		ds = append(ds, receive(t, cons, 10)...)
	}
	for _, d := range ds { // one by one, as runs end
		if err := cons.Done(t.Context(), []core.Delivery{d}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all are deleted", func() bool { return depth(t, url) == 0 })
	if n := front.Counts()["DeleteMessageBatch"]; n != 4 {
		t.Errorf("24 deletions, of which one failed once, took %d calls, want 4", n)
	}
}

func TestDoneThatSQSRefusesDoesNotBlock(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	url := sqstest.NewQueue(t, nil)
	c := config(front.URL, url)
	c.Linger, c.Visibility, c.Hold = 10*time.Millisecond, time.Second, time.Second
	send(t, c, messages(1))
	cons := consumer(t, c)
	front.Set("DeleteMessageBatch", sqstest.Drop)
	if err := cons.Done(t.Context(), receive(t, cons, 1)); err != nil {
		t.Errorf("Done: %v", err)
	}
	until(t, "deleting was tried", func() bool { return front.Counts()["DeleteMessageBatch"] >= 3 })
	front.Set("DeleteMessageBatch", nil)
	if err := cons.Done(t.Context(), receive(t, cons, 1)); err != nil {
		t.Errorf("Done: %v", err)
	}
	until(t, "it is deleted", func() bool { return depth(t, url) == 0 })
}

func TestDoneAfterCloseDeletesAtOnce(t *testing.T) {
	t.Parallel()
	url := sqstest.NewQueue(t, nil)
	c := config(sqstest.Endpoint(t), url)
	send(t, c, messages(3))
	cons := consumer(t, c)
	ds := receive(t, cons, 10)
	if err := cons.Close(t.Context()); err != nil {
		t.Error(err)
	}
	ds = append(ds, core.Delivery{Receipt: "a receipt of another queue"})
	if err := cons.Done(t.Context(), ds); err != nil {
		t.Errorf("Done: %v", err)
	}
	if n := depth(t, url); n != 3-(len(ds)-1) {
		t.Errorf("%d messages are left, want %d", n, 3-(len(ds)-1))
	}
}

func TestVisibilityIsExtendedWhileRunsGoOn(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	url := sqstest.NewQueue(t, nil)
	c := config(front.URL, url)
	c.Visibility = 2 * time.Second
	send(t, c, messages(12))
	cons := consumer(t, c)
	ds := receive(t, cons, 10)
	for len(ds) < 12 {
		ds = append(ds, receive(t, cons, 10)...)
	}
	var once sync.Once // of the looks one fails as a whole
	front.Set("ChangeMessageVisibilityBatch", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		refused := false
		once.Do(func() { refused = true })
		if refused {
			sqstest.Refuse(http.StatusForbidden, "OverLimit")(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	})
	out, err := raw(t).ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) > 0 {
		t.Errorf("another consumer received %d messages while their runs went on", len(out.Messages))
	}
	if calls := front.Counts()["ChangeMessageVisibilityBatch"]; calls < 6 || calls > 20 {
		t.Errorf("made %d calls to extend 12 messages for 5 s, want two a second and one again", calls)
	}
	if err := cons.Done(t.Context(), ds); err != nil {
		t.Fatal(err)
	}
	until(t, "all are deleted", func() bool { return depth(t, url) == 0 })
}

func TestVisibilityIsNotExtendedForEver(t *testing.T) {
	t.Parallel()
	c := config(sqstest.Endpoint(t), sqstest.NewQueue(t, nil))
	c.Visibility, c.Hold = time.Second, 2*time.Second
	send(t, c, messages(1))
	cons := consumer(t, c)
	first := receive(t, cons, 1)[0]
	began := time.Now()
	second := receive(t, cons, 1)[0]
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("it came again after %s, want after more than its visibility timeout", took)
	}
	if diff := cmp.Diff(first.Message, second.Message); diff != "" || first.Token == second.Token {
		t.Errorf("another delivery of the same is wanted, got %v and %v:\n%s", first, second, diff)
	}
}

func TestReceiveEndsAtOnce(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	waiting := make(chan struct{}, 1)
	front.Set("ReceiveMessage", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		waiting <- struct{}{}
		forward.ServeHTTP(w, r)
	})
	cons := consumer(t, config(front.URL, sqstest.NewQueue(t, nil)))
	errStop := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := cons.Receive(ctx, jobs, 10)
		ended <- err
	}()
	<-waiting
	cancel(errStop)
	select {
	case err := <-ended:
		if !errors.Is(err, errStop) {
			t.Errorf("Receive ended with %v, want the cause", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Receive goes on with its long poll")
	}
}

// A message that SQS hands out when Receive is ending is handed back, and is not
// hidden from others for two minutes.
func TestReceiveHandsBack(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	asked, ended := make(chan struct{}), make(chan struct{})
	front.Set("ReceiveMessage", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		close(asked)
		<-ended
		forward.ServeHTTP(w, r)
	})
	address := sqstest.NewQueue(t, nil)
	c := config(front.URL, address)
	send(t, c, messages(3))
	ctx, cancel := context.WithCancelCause(t.Context())
	errStop := errors.New("stopped by the test")
	received := make(chan error, 1)
	cons := consumer(t, c)
	go func() {
		ds, err := cons.Receive(ctx, jobs, 10)
		if len(ds) > 0 {
			err = errors.New("it was delivered")
		}
		received <- err
	}()
	<-asked
	cancel(errStop)
	close(ended)
	if err := <-received; !errors.Is(err, errStop) {
		t.Errorf("Receive ended with %v, want the cause", err)
	}
	front.Set("ReceiveMessage", nil)
	if diff := cmp.Diff(upTo(3), fences(t, consumer(t, c), 3)); diff != "" {
		t.Errorf("received by another (-want +got):\n%s", diff)
	}
}

func TestQueueGoneAndBack(t *testing.T) {
	t.Parallel()
	client := raw(t)
	url := sqstest.NewQueue(t, nil)
	c := config(sqstest.Endpoint(t), url)
	pub, cons := publisher(t, c), consumer(t, c)
	if _, err := client.DeleteQueue(t.Context(), &awssqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	if n, err := pub.Publish(t.Context(), jobs, messages(1)); n != 0 || !errors.Is(err, sqs.ErrUnknownQueue) {
		t.Errorf("Publish took %d with error %v, want an unknown queue", n, err)
	}
	if ds, err := cons.Receive(t.Context(), jobs, 1); len(ds) > 0 || !errors.Is(err, sqs.ErrUnknownQueue) {
		t.Errorf("Receive returned %d deliveries and %v, want an unknown queue", len(ds), err)
	}
	name := url[strings.LastIndexByte(url, '/')+1:]
	if _, err := client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name}); err != nil {
		t.Fatal(err)
	}
	send(t, c, messages(5))
	if diff := cmp.Diff(upTo(5), fences(t, cons, 5)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

// Unreadable messages do not stand in the way of those behind them, and the
// redrive policy takes them.
func TestUnreadableMessagesGoToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	client := raw(t)
	dead := sqstest.NewQueue(t, nil)
	attributes, err := client.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{
		QueueUrl: &dead, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	url := sqstest.NewQueue(t, map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + attributes.Attributes["QueueArn"] + `","maxReceiveCount":2}`,
	})
	for range 3 {
		for _, body := range []string{"hello", `{"v":2,"run":"run_of_the_future","fence":1}`, `{"v":1,"run":"","fence":1}`, "{}", "null"} {
			if _, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(body)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := config(sqstest.Endpoint(t), url)
	c.Visibility = time.Second
	send(t, c, messages(5))
	cons := consumer(t, c)
	if diff := cmp.Diff(upTo(5), fences(t, cons, 5)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	received := make(chan int, 1)
	go func() { // somebody has to ask for them to be taken away
		ds, _ := cons.Receive(ctx, jobs, 10) // it ends with its context
		received <- len(ds)
	}()
	until(t, "they are dead letters", func() bool { return depth(t, dead) == 15 })
	cancel()
	if n := <-received; n > 0 || depth(t, url) > 0 {
		t.Errorf("%d of them were delivered, %d are left", n, depth(t, url))
	}
}

// Without a redrive policy one goes round 20 times and no more.
func TestUnreadableMessagesDoNotGoRoundForEver(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	url := sqstest.NewQueue(t, nil)
	if _, err := raw(t).SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	front.Set("ReceiveMessage", func(w http.ResponseWriter, r *http.Request, forward http.Handler) { // tens of receives each time
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		_, _ = w.Write([]byte(strings.Replace(answer.Body.String(), `"ApproximateReceiveCount":"`, `"ApproximateReceiveCount":"1`, 1)))
	})
	c := config(front.URL, url)
	c.Visibility = time.Second
	cons := consumer(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	received := make(chan int, 1)
	go func() {
		ds, _ := cons.Receive(ctx, jobs, 10) // it ends with its context
		received <- len(ds)
	}()
	until(t, "it was received ten times and is gone", func() bool { return depth(t, url) == 0 })
	cancel()
	if n, calls := <-received, front.Counts()["ReceiveMessage"]; n > 0 || calls < 10 {
		t.Errorf("it was delivered %d times, and deleted after %d calls, want none and 10", n, calls)
	}
}
