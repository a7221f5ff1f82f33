package httptarget_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/httptarget"
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"url":"https://example.com"}`,
		`{"url":"http://example.com:8080/a?b=c#d","method":"DELETE","headers":{},"body":null}`,
		`{"url":"HTTPS://[2606:4700::1111]/","headers":{"X-A":"tab\tand é"},"body":false}`,
		`{"url":"https://bücher.example/"}`,
		`{"url":"https://example.com","method":null,"headers":null}`,
	} {
		if err := httptarget.New(httptarget.Config{}).Check(json.RawMessage(payload)); err != nil {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

type refusal struct{ payload, field string }

// refusals hold the word hunter2 wherever a value may be.
func refusals() []refusal {
	tooMany := make([]string, 65)
	for i := range tooMany {
		tooMany[i] = fmt.Sprintf(`"X-%d":"v"`, i)
	}
	return []refusal{
		{``, ""}, {`null`, ""}, {`[]`, ""}, {`"hunter2"`, ""}, {`{`, ""},
		{`{}`, "url"}, {`{"url":null}`, "url"}, {`{"url":7}`, "url"}, {`{"url":""}`, "url"},
		{`{"url":"hunter2"}`, "url"}, {`{"url":"/hunter2"}`, "url"}, {`{"url":"//hunter2.com"}`, "url"},
		{`{"url":"http:hunter2"}`, "url"}, {`{"url":"http://"}`, "url"}, {`{"url":"http://:80/hunter2"}`, "url"},
		{`{"url":"ftp://hunter2.com"}`, "url"}, {`{"url":"file:///hunter2"}`, "url"},
		{`{"url":"https://user:hunter2@example.com"}`, "url"}, {`{"url":"https://hunter2@example.com"}`, "url"},
		{`{"url":"https://hunter2.com:0"}`, "url"}, {`{"url":"https://hunter2.com:65536"}`, "url"},
		{`{"url":"https://hunter2.com\n"}`, "url"}, {`{"url":"https://hunter 2.com"}`, "url"},
		{`{"url":"https://example.com/hunter2/` + strings.Repeat("x", 8<<10) + `"}`, "url"},
		{`{"url":"https://example.com","URL":"hunter2"}`, "URL"},
		{`{"url":"https://example.com","timeout":"hunter2"}`, "timeout"},
		{`{"url":"https://example.com","method":"hunter2"}`, "method"},
		{`{"url":"https://example.com","method":"get"}`, "method"},
		{`{"url":"https://example.com","method":""}`, "method"},
		{`{"url":"https://example.com","method":"CONNECT"}`, "method"},
		{`{"url":"https://example.com","method":1}`, "method"},
		{`{"url":"https://example.com","headers":["hunter2"]}`, "headers"},
		{`{"url":"https://example.com","headers":{` + strings.Join(tooMany, ",") + `}}`, "headers"},
		{`{"url":"https://example.com","headers":{"":"hunter2"}}`, "headers"},
		{`{"url":"https://example.com","headers":{"hunter2 x":"v"}}`, "headers"},
		{`{"url":"https://example.com","headers":{"hunter2\r\nX":"v"}}`, "headers"},
		{`{"url":"https://example.com","headers":{"X-A":"hunter2\r\nX-B: c"}}`, "headers.X-A"},
		{`{"url":"https://example.com","headers":{"X-A":"hunter2\u0000"}}`, "headers.X-A"},
		{`{"url":"https://example.com","headers":{"X-A":null}}`, "headers.X-A"},
		{`{"url":"https://example.com","headers":{"X-A":["hunter2"]}}`, "headers.X-A"},
		{`{"url":"https://example.com","headers":{"X-A":"1","x-a":"hunter2"}}`, "headers.x-a"},
		{`{"url":"https://example.com","headers":{"Host":"hunter2"}}`, "headers.Host"},
		{`{"url":"https://example.com","headers":{"content-length":"7"}}`, "headers.content-length"},
		{`{"url":"https://example.com","headers":{"Transfer-Encoding":"chunked"}}`, "headers.Transfer-Encoding"},
		{`{"url":"https://example.com","headers":{"TE":"trailers"}}`, "headers.TE"},
		{`{"url":"https://example.com","headers":{"Connection":"close"}}`, "headers.Connection"},
		{`{"url":"https://example.com","headers":{"fencepost-FENCE":"1"}}`, "headers.fencepost-FENCE"},
		{`{"url":"https://example.com","headers":{"Fencepost-Anything":"1"}}`, "headers.Fencepost-Anything"},
	}
}

func TestCheckNamesTheFieldAndNotTheValue(t *testing.T) {
	t.Parallel()
	target := httptarget.New(httptarget.Config{AllowPrivate: true})
	for _, tt := range refusals() {
		err := target.Check(json.RawMessage(tt.payload))
		var e *core.Error
		if !errors.As(err, &e) || e.Code != core.CodeInvalid {
			t.Errorf("%.80s: error %v, want one of code invalid", tt.payload, err)
			continue
		}
		if diff := cmp.Diff(tt.field, e.Field); diff != "" {
			t.Errorf("%.80s: field (-want +got):\n%s", tt.payload, diff)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80s: error %q repeats the value", tt.payload, err)
		}
		if _, err := target.Execute(t.Context(), execution(tt.payload)); !core.IsPermanent(err) {
			t.Errorf("%.80s: Execute answered %v, want a permanent error", tt.payload, err)
		}
	}
}
