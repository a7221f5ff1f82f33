#!/usr/bin/env python3
"""A Fencepost worker in Python's standard library alone: it leases runs of a queue
and hands each to a command, with the payload on its standard input.

    fencepost up --worker-queue reports
    FENCEPOST_API_KEY=... python3 worker.py reports -- ./make-report --monthly

The command finds FENCEPOST_RUN_ID, FENCEPOST_FENCE, FENCEPOST_ATTEMPT and
FENCEPOST_SCHEDULED_FOR in its environment. Exit code 0 is success, with the end of
the output as the result; 65 is a failure that trying again cannot help (EX_DATAERR);
any other is tried again as the schedule's retry says.

The rules for a worker in any language are here:
  - each lease has an Idempotency-Key of its own, sent again until it is answered;
  - a lease is trusted from when it was asked for, by the worker's own clock, and no
    longer: the job is stopped then, since another may have the run;
  - at shutdown the job is stopped first, and its run is handed back after that;
  - an outcome is sent until it is answered.
"""
import argparse, json, os, signal, subprocess, sys, tempfile, threading, time
import urllib.error, urllib.request, uuid

stopping, refused = threading.Event(), threading.Event()


def call(path, body, **headers):
    """Posts to the API. Raises HTTPError for a refusal, OSError for no answer."""
    base = os.environ.get("FENCEPOST_URL", "http://127.0.0.1:8080")
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    headers |= {"Authorization": "Bearer " + os.environ.get("FENCEPOST_API_KEY", ""), "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def again(error):
    """Says whether a request may be sent again after an error."""
    return not isinstance(error, urllib.error.HTTPError) or error.code == 429 or error.code >= 500


def log(run, text):
    print(run["run_id"] if run else "worker", text, file=sys.stderr, flush=True)


def lease(queue, seconds):
    """Returns a run or None, and until when it is ours by this machine's clock."""
    key, delay = str(uuid.uuid4()), 0.2
    while True:
        asked = time.monotonic()
        try:
            runs = call(f"/v1/queues/{queue}/lease", {"wait": "5s", "lease": f"{seconds}s"}, Idempotency_Key=key)["runs"]
            return (runs[0] if runs else None), asked + seconds
        except OSError as e:
            if not again(e):
                log(None, f"cannot lease from {queue}: {e} {e.read().decode()}")
                refused.set()
                stopping.set()
            if stopping.is_set():
                return None, 0
            log(None, f"no answer to a lease, asked again: {e}")
            time.sleep(delay)
            delay = min(2 * delay, 5)


def finish(run, outcome, **more):
    """Sends an outcome until it is answered, for a minute at most."""
    for n in range(30):
        try:
            state = call(f"/v1/runs/{run['run_id']}/finish", {"fence": run["fence"], "outcome": outcome, **more})["state"]
            return log(run, f"{outcome}: {state}")
        except OSError as e:
            if not again(e):
                return log(run, f"{outcome}, refused: {e}")
            time.sleep(min(0.2 * 2**n, 2))
    log(run, f"{outcome}, but it could not be told")


def stop(job, *signals):
    """Ends the command with all that it started."""
    for sig in signals:
        try:
            os.killpg(job.pid, sig)
            return job.wait(timeout=2)
        except ProcessLookupError:
            return job.wait()
        except subprocess.TimeoutExpired:
            continue


def watch(job, run, until, seconds):
    """Waits for the command, keeping the run. Returns why it was stopped, or None."""
    beat = time.monotonic() + seconds / 3
    while True:
        try:
            job.wait(timeout=0.2)
            return None
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        if now >= until - 1:
            return "lost"
        if stopping.is_set():
            return "handed_back"
        if now < beat:
            continue
        beat = now + seconds / 3
        try:
            if call(f"/v1/runs/{run['run_id']}/heartbeat", {"fence": run["fence"], "lease": f"{seconds}s"})["cancel_requested"]:
                return "canceled"
            until = now + seconds
        except OSError as e:
            if not again(e):
                return "failed" if b"attempt_timed_out" in e.read() else "lost"


def work(run, until, command, seconds):
    """Runs the command for a run, and says how that ended."""
    env = os.environ | {"FENCEPOST_" + k.upper(): str(run[k]) for k in ("run_id", "fence", "attempt", "scheduled_for")}
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out:
        stdin.write(json.dumps(run["payload"]).encode())
        stdin.seek(0)
        try:
            job = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        except OSError as e:
            return finish(run, "failed", error=str(e))
        why = watch(job, run, until, seconds)
        if why:
            stop(job, *([] if why == "lost" else [signal.SIGTERM]), signal.SIGKILL)
        out.seek(max(0, out.seek(0, os.SEEK_END) - 4000))
        text = out.read().decode(errors="replace").replace("\0", "\ufffd")
    if why == "lost":
        return log(run, "lost: another may have it; its command was stopped")
    if why:
        return finish(run, why, **({"error": "timed out"} if why == "failed" else {}))
    if job.returncode == 0:
        return finish(run, "succeeded", result={"output": text})
    finish(run, "failed", error=f"exit code {job.returncode}: {text}", permanent=job.returncode == 65)


def loop(args):
    while not stopping.is_set():
        run, until = lease(args.queue, args.lease)
        if run and stopping.is_set():
            finish(run, "handed_back")
        elif run:
            work(run, until, args.command, args.lease)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description="Runs a command for each run of a Fencepost queue.")
    p.add_argument("queue")
    p.add_argument("command", nargs="+")
    p.add_argument("--lease", type=int, default=30, help="seconds that a run is held without a heartbeat, from 5")
    p.add_argument("--concurrency", type=int, default=1)
    args = p.parse_args()
    for sig in signal.SIGTERM, signal.SIGINT:
        signal.signal(sig, lambda *_: stopping.set())
    threads = [threading.Thread(target=loop, args=[args]) for _ in range(args.concurrency)]
    for t in threads:
        t.start()
    for t in threads:
        while t.is_alive():
            t.join(0.2)  # not for ever: a signal is handled between two joins
    sys.exit(1 if refused.is_set() else 0)
