# The commands that the README promises. Everything that is needed comes with the Rust toolchain and Cargo.lock.

CARGO ?= cargo
WARMSET := target/release/warmset

.PHONY: tour build install test lint unit smoke bench live soak many clean

## Measure this machine, judge an example with it, open a report: the first thing to run.
tour: build
	$(WARMSET) tour

build:
	$(CARGO) build --release --locked -p warmset

PREFIX ?= /usr/local
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

## The command, and the libraries for C and C++ with their headers, for tasks and for colors: make install PREFIX=...
install: build
	$(CARGO) build --release --locked -p warmset-color -p warmset-task
	install -D -m 755 $(WARMSET) $(DESTDIR)$(PREFIX)/bin/warmset
	install -D -m 755 target/release/libwarmset_color.so $(DESTDIR)$(PREFIX)/lib/libwarmset_color.so
	install -D -m 644 target/release/libwarmset_color.a $(DESTDIR)$(PREFIX)/lib/libwarmset_color.a
	install -D -m 644 crates/color-c/include/warmset_color.h $(DESTDIR)$(PREFIX)/include/warmset_color.h
	install -D -m 644 crates/color-c/include/warmset_color.hpp $(DESTDIR)$(PREFIX)/include/warmset_color.hpp
	install -D -m 755 target/release/libwarmset_task.so $(DESTDIR)$(PREFIX)/lib/libwarmset.so
	install -D -m 644 target/release/libwarmset_task.a $(DESTDIR)$(PREFIX)/lib/libwarmset.a
	install -D -m 644 crates/task/include/warmset.h $(DESTDIR)$(PREFIX)/include/warmset.h
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' crates/color-c/warmset-color.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/warmset-color.pc
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' crates/task/warmset.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/warmset.pc

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

## Two hours for real: ten random sets under every policy, a minute each; what was run stays in target/live, to go on from there.
live: build
	sh tests/live_sets.sh $(WARMSET) target/live $(or $(SETS),10) $(or $(FOR),60s)

## An hour for real, with the right to real-time priorities: no rule broken, no event lost, no growth of memory.
soak: build
	sh tests/soak.sh $(WARMSET) $(or $(FOR),1h)

## Two minutes and a half for real: 200 tasks on two processors, then a million jobs; memory and trace bounded, no event lost.
many: build
	sh tests/many.sh $(WARMSET)

clean:
	$(CARGO) clean
