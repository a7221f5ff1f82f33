package up_test

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
	"github.com/fencepost/fencepost/local/up"
)

// TestWrongSettings: what no role could use is refused before anything starts.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	const address = "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs"
	for name, c := range map[string]struct {
		config up.Config
		field  string
	}{
		"unknown queue":        {up.Config{SQS: map[string]string{"mails": address}}, "--sqs-queue"},
		"dead letters nowhere": {up.Config{DeadLetters: "dead"}, "--dead-letter-queue"},
		"history of hours":     {up.Config{Keep: 23 * time.Hour}, "--keep-history"},
		"history for ever":     {up.Config{Keep: 367 * 24 * time.Hour}, "--keep-history"},
		"worker queue of ours": {up.Config{WorkerQueues: []string{"http"}}, "--worker-queue"},
		"dead letters as jobs": {up.Config{DeadLetters: "http", SQS: map[string]string{"http": address}}, "--dead-letter-queue"},
	} {
		c.config.Out = io.Discard
		var ce *core.Error
		if err := up.Run(t.Context(), c.config); !errors.As(err, &ce) || ce.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRunsThroughSQS: runs of a mapped queue go through SQS, and another queue is
// told of one that is dead. The environment names endpoint and credentials.
func TestRunsThroughSQS(t *testing.T) {
	jobs, dead := sqstest.NewQueue(t, nil), sqstest.NewQueue(t, nil)
	front := sqstest.NewFront(t)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": front.URL, "AWS_REGION": sqstest.Region, "AWS_ACCESS_KEY_ID": sqstest.KeyID, "AWS_SECRET_ACCESS_KEY": sqstest.Secret,
	} {
		t.Setenv(name, value)
	}
	i := startWith(t, up.Config{DataDir: dataDir(t), SQS: map[string]string{"exec": jobs, "dead": dead}, DeadLetters: "dead"}, "")
	run := func(name, command string) string {
		made := i.call("POST", "/v1/schedules", `{"name":"`+name+`","spec":"0 0 1 1 *","retry":{"max_attempts":1},"job":{"queue":"exec","payload":{"command":"`+command+`"}}}`, 201)
		return i.call("POST", "/v1/schedules/"+made["id"].(string)+"/trigger", "", 202)["id"].(string)
	}
	good, bad := run("good", "true"), run("bad", "exit 3")
	for id, state := range map[string]string{good: "succeeded", bad: "dead"} {
		i.until("the run is "+state, func() bool { return i.call("GET", "/v1/runs/"+id, "", 200)["state"] == state })
	}
	if n := front.Counts()["ReceiveMessage"]; n == 0 {
		t.Error("nothing was received from SQS")
	}
	client := awssqs.NewFromConfig(sqstest.Config(front.URL))
	var told struct{ Run string }
	i.until("the dead letter comes", func() bool {
		out, err := client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &dead, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) != 1 {
			return false
		}
		return json.Unmarshal([]byte(aws.ToString(out.Messages[0].Body)), &told) == nil
	})
	if told.Run != bad {
		t.Errorf("told of %s, want %s", told.Run, bad)
	}
	if err := i.stop(); err != nil {
		t.Error(err)
	}
}
