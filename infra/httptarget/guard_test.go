package httptarget_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/httptarget"
)

func TestGuardRefusesWhatIsNotPublic(t *testing.T) {
	t.Parallel()
	tests := []struct {
		ip string
		ok bool
	}{
		{"8.8.8.8", true}, {"1.1.1.1", true}, {"100.63.255.255", true}, {"100.128.0.0", true},
		{"172.15.255.255", true}, {"172.32.0.0", true}, {"192.0.1.0", true}, {"198.17.255.255", true}, {"223.255.255.255", true},
		{"0.0.0.0", false}, {"0.1.2.3", false}, {"10.0.0.1", false}, {"100.64.0.0", false}, {"100.127.255.255", false},
		{"100.100.100.200", false}, {"127.0.0.1", false}, {"127.255.255.254", false}, {"168.63.129.16", false},
		{"169.254.0.1", false}, {"169.254.169.254", false}, {"172.16.0.1", false}, {"172.31.255.255", false},
		{"192.0.0.192", false}, {"192.0.2.1", false}, {"192.88.99.1", false}, {"192.168.1.1", false},
		{"198.18.0.1", false}, {"198.19.255.255", false}, {"198.51.100.1", false}, {"203.0.113.1", false},
		{"224.0.0.1", false}, {"239.255.255.255", false}, {"240.0.0.1", false}, {"255.255.255.255", false},
		{"2606:4700::1111", true}, {"2a00:1450:4001::1", true},
		{"::", false}, {"::1", false}, {"::127.0.0.1", false}, {"::8.8.8.8", false},
		{"fe80::1", false}, {"fe80::1%25eth0", false}, {"fec0::1", false}, {"fc00::1", false}, {"fd00:ec2::254", false},
		{"fd20:ce::254", false}, {"ff02::1", false}, {"100::1", false}, {"5f00::1", false},
		{"2001::1", false}, {"2001:db8::1", false}, {"3fff::1", false}, {"2a00::5efe:10.0.0.1", false}, {"2a00::200:5efe:a00:1", false},
		{"::ffff:8.8.8.8", true}, {"::ffff:127.0.0.1", false}, {"::ffff:169.254.169.254", false}, {"::ffff:a00:1", false},
		{"64:ff9b::8.8.8.8", true}, {"64:ff9b::10.0.0.1", false}, {"64:ff9b::169.254.169.254", false}, {"64:ff9b:1::8.8.8.8", false},
		{"2002:808:808::1", true}, {"2002:a00:1::1", false}, {"2002:7f00:1::1", false}, {"2002:a9fe:a9fe::1", false},
	}
	guarded := httptarget.New(httptarget.Config{})
	open := httptarget.New(httptarget.Config{AllowPrivate: true})
	for _, tt := range tests {
		host := tt.ip
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		payload := json.RawMessage(fmt.Sprintf(`{"url":"http://%s:81/"}`, host))
		if err := guarded.Check(payload); (err == nil) != tt.ok {
			t.Errorf("%s: error %v, want allowed: %v", tt.ip, err, tt.ok)
		}
		if err := open.Check(payload); err != nil {
			t.Errorf("%s: refused although private addresses are allowed: %v", tt.ip, err)
		}
	}
}

func TestGuardAllowsOneNetwork(t *testing.T) {
	t.Parallel()
	target := httptarget.New(httptarget.Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}})
	for host, ok := range map[string]bool{
		"10.1.2.3": true, "[::ffff:10.1.2.3]": true, "[fd00:1::5]": true, "8.8.8.8": true,
		"10.2.0.1": false, "[fd00:2::5]": false, "127.0.0.1": false,
	} {
		err := target.Check(json.RawMessage(fmt.Sprintf(`{"url":"http://%s/"}`, host)))
		if (err == nil) != ok {
			t.Errorf("%s: error %v, want allowed: %v", host, err, ok)
		}
	}
}

// A name passes Check, since it may stand for anything by the time it is called.
func TestGuardJudgesNamesWhenTheyAreDialed(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	t.Cleanup(srv.Close)
	payload := fmt.Sprintf(`{"url":"http://localhost:%d/"}`, srv.Listener.Addr().(*net.TCPAddr).Port)
	target := httptarget.New(httptarget.Config{})
	if err := target.Check(json.RawMessage(payload)); err != nil {
		t.Fatal(err)
	}
	_, err := target.Execute(t.Context(), execution(payload))
	if !core.IsPermanent(err) || !strings.HasPrefix(err.Error(), "address refused: ") {
		t.Fatalf("error %v, want a permanent refusal", err)
	}
	if strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "::1") {
		t.Errorf("error %q tells what the name resolves to", err)
	}
}

// Not parallel: it sets the environment.
func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	target := httptarget.New(httptarget.Config{})
	_, err := target.Execute(t.Context(), execution(`{"url":"http://no-such-host.invalid/"}`))
	if err == nil || !strings.HasPrefix(err.Error(), "call url: the host's name ") {
		t.Errorf("error %v, want a name that cannot be looked up", err)
	}
}
