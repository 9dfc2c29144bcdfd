# The commands that the README promises. Everything that is needed comes with the Rust toolchain and Cargo.lock.

CARGO ?= cargo
WARMSET := target/release/warmset

.PHONY: tour build test lint unit smoke bench soak clean

## Measure this machine, judge an example with it, open a report: the first thing to run.
tour: build
	$(WARMSET) tour

build:
	$(CARGO) build --release --locked -p warmset

## All that must hold before a change lands.
test: lint unit smoke

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

unit:
	$(CARGO) test --locked --workspace

## The main commands on real input, end to end; by the binary that the tests have built, not a second one.
smoke:
	$(CARGO) test --locked --workspace --no-run
	sh tests/smoke.sh target/debug/warmset

## Speed against the figures of other tools, in one run on one machine.
bench:
	$(CARGO) bench --locked --workspace --bench '*'

## An hour for real, with the right to real-time priorities: no rule broken, no event lost, no growth of memory.
soak: build
	sh tests/soak.sh $(WARMSET) $(or $(FOR),1h)

clean:
	$(CARGO) clean
