# The commands that the README promises. Everything that is needed comes with the Rust toolchain and
# Cargo.lock.

CARGO ?= cargo
WARMSET := target/release/warmset

.PHONY: tour tour-long build install install-words install-task install-color test rounds \
	lint unit smoke test-explorer bench-explorer test-slurm explorer-libraries exact \
	certificates bench live soak many faults sanitize deb try-deb book clean test-python wheel \
	wheel-aarch64 try-wheel-aarch64 bench-python bench-dask test-kernel kernel-program static \
	static-aarch64 test-static uninstall

## Measure this machine, judge an example with it, open a report: the first thing to run.
tour: build
	$(WARMSET) tour

## The same, and what scheduling costs here, and 20 task sets run for real: five minutes, as root.
## Called again, it goes on where it was.
tour-long: build
	$(WARMSET) tour --long

build:
	$(CARGO) build --release --locked -p warmset

PREFIX ?= /usr/local
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
MAJOR = $(firstword $(subst ., ,$(VERSION)))
# Where the libraries were built.
FROM ?= target/release
# Without a relative part: programs are told this path, and run anywhere.
TO = $(abspath $(PREFIX))
# The loader looks into /usr/lib by itself; elsewhere a program has to know where its libraries are.
RPATH = $(if $(filter /usr,$(TO)),,-Wl,-rpath,$${libdir})
# A library as Cargo named it, and what it is called: the file, the name that programs ask for at
# their start (SONAME, set in the build script of its crate), and the name for the linker.
define library
	install -D -m 755 $(FROM)/lib$(1).so $(DESTDIR)$(TO)/lib/lib$(2).so.$(VERSION)
	ln -sf lib$(2).so.$(VERSION) $(DESTDIR)$(TO)/lib/lib$(2).so.$(MAJOR)
	ln -sf lib$(2).so.$(MAJOR) $(DESTDIR)$(TO)/lib/lib$(2).so
	install -D -m 644 $(FROM)/lib$(1).a $(DESTDIR)$(TO)/lib/lib$(2).a
endef
PC = sed -e 's|@PREFIX@|$(TO)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@RPATH@|$(RPATH)|'

## The command with its manual pages and completions, and the libraries for C and C++ with their
## headers, for tasks and for colors: make install PREFIX=...
install: build
	$(CARGO) build --release --locked -p warmset-color -p warmset-task -p warmset-verify
	install -D -m 755 $(WARMSET) $(DESTDIR)$(TO)/bin/warmset
	install -D -m 755 target/release/warmset-verify $(DESTDIR)$(TO)/bin/warmset-verify
	$(MAKE) --no-print-directory install-words
	$(MAKE) --no-print-directory install-task install-color FROM=target/release

SHARE = $(DESTDIR)$(TO)/share
## Manual pages, and completions for bash, zsh and fish, where each looks for them; and the schemas of
## JSON documents. Debian's zsh looks for those of packages in vendor-completions.
ZSH = $(SHARE)/zsh/$(or $(ZSH_FUNCTIONS),site-functions)
install-words:
	mkdir -p $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(ZSH) $(SHARE)/fish/vendor_completions.d
	$(WARMSET) manual -o $(SHARE)/man/man1
	$(WARMSET) schema -o $(SHARE)/warmset/schema
	$(WARMSET) completions bash -o $(SHARE)/bash-completion/completions/warmset
	$(WARMSET) completions zsh -o $(ZSH)/_warmset
	$(WARMSET) completions fish -o $(SHARE)/fish/vendor_completions.d/warmset.fish

## The library for tasks in C alone, as it was built into the directory FROM.
install-task:
	$(call library,warmset_task,warmset)
	install -D -m 644 crates/task/include/warmset.h $(DESTDIR)$(TO)/include/warmset.h
	mkdir -p $(DESTDIR)$(TO)/lib/pkgconfig
	$(PC) crates/task/warmset.pc.in > $(DESTDIR)$(TO)/lib/pkgconfig/warmset.pc

## The library of colored heaps alone.
install-color:
	$(call library,warmset_color,warmset_color)
	install -D -m 644 crates/color-c/include/warmset_color.h $(DESTDIR)$(TO)/include/warmset_color.h
	install -D -m 644 crates/color-c/include/warmset_color.hpp $(DESTDIR)$(TO)/include/warmset_color.hpp
	mkdir -p $(DESTDIR)$(TO)/lib/pkgconfig
	$(PC) crates/color-c/warmset-color.pc.in > $(DESTDIR)$(TO)/lib/pkgconfig/warmset-color.pc

## Removes what `make install` with the same PREFIX has put there, and no directory.
uninstall:
	rm -f $(addprefix $(DESTDIR)$(TO)/bin/,warmset warmset-verify)
	rm -f $(addprefix $(DESTDIR)$(TO)/lib/libwarmset,.so* .a _color.so* _color.a)
	rm -f $(addprefix $(DESTDIR)$(TO)/lib/pkgconfig/warmset,.pc -color.pc)
	rm -f $(addprefix $(DESTDIR)$(TO)/include/warmset,.h _color.h _color.hpp)
	rm -f $(SHARE)/man/man1/warmset.1 $(SHARE)/man/man1/warmset-*.1
	rm -f $(SHARE)/bash-completion/completions/warmset $(ZSH)/_warmset \
		$(SHARE)/fish/vendor_completions.d/warmset.fish
	rm -rf $(SHARE)/warmset

## All that must hold before a change lands. It goes on after a failure; its end lists what failed,
## and which tests could not run here and why. Logs stay in target/test-logs.
test:
	CARGO="$(CARGO)" sh tests/all.sh

## The tests again and again, every second round beside programs that keep all processors busy: make
## rounds ROUNDS=30. The end tells which tests failed how often. Logs stay in target/rounds, and the
## same call goes on where it was ended. ACROSS=yes keeps rounds that passed when files change.
rounds:
	CARGO="$(CARGO)" ACROSS="$(ACROSS)" sh tests/rounds.sh $(or $(ROUNDS),10)

lint:
	$(CARGO) fmt --check -- crates/policy/src/catalog/*.rs
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

unit:
	$(CARGO) test --locked --workspace --no-fail-fast

## The main commands on real input, end to end; by the binary that the tests have built, not a
## second one.
smoke:
	$(CARGO) test --locked --workspace --no-run
	sh tests/smoke.sh target/debug/warmset

## The explorer of studies in headless Chromium: values, keyboard, dark, phone, links, files.
test-explorer:
	$(CARGO) build --locked -p warmset
	sh tests/explorer.sh target/debug/warmset

## How long the explorer takes to open a page of 10 policies over 36 scenarios, and to answer.
bench-explorer: build
	sh tests/explorer.sh $(WARMSET) target/explorer-time time

## As root: a study as an array of jobs of a real Slurm of one node, set up and taken down again.
test-slurm: build
	sh tests/slurm.sh $(WARMSET)

## The Python package in an environment of its own, in target/python: built, installed, tested.
test-python:
	$(CARGO) build --locked -p warmset
	sh tests/python.sh target/debug/warmset

## A wheel of the Python package with the command, in target/wheels: pip install target/wheels/*.whl
wheel:
	CARGO="$(CARGO)" sh packages/wheel.sh

## The same for Linux on aarch64, in target/wheels-aarch64.
wheel-aarch64:
	CARGO="$(CARGO)" sh packages/wheel.sh aarch64

## A Python for aarch64 loads that wheel under qemu-user, and says what it says here. After make
## test-python, which has the package to compare with.
try-wheel-aarch64:
	sh packages/try_wheel.sh aarch64

## A million task sets in Python beside the command: time and memory.
bench-python: build wheel
	sh crates/python/benches/run.sh $(WARMSET)

## Studies by Dask: what a part and what a shard costs, how well workers here are used, and how well
## many would be: make bench-dask SCALE="--shards 100000"
bench-dask: wheel
	sh crates/python/benches/scale.sh $(SCALE)

## Fetches the libraries of the explorer's charts again: make explorer-libraries D3=7.9.2 PLOT=0.6.17
D3 ?= 7.9.2
PLOT ?= 0.6.17
explorer-libraries:
	sh tests/explorer_libraries.sh $(D3) $(PLOT)

## A million small sets: no test's yes is disproved by any release pattern on the half grid.
## make exact SETS=...
exact:
	WARMSET_EXACT_SETS=$(or $(SETS),1000000) $(CARGO) test --locked --release -p warmset-analyze \
		--test exact_search -- --nocapture --test-threads=1

## Certificates of 100,000 random sets: every one verifies, no false one does, both verifiers agree.
## make certificates SETS=...
certificates:
	WARMSET_CERTIFICATE_SETS=$(or $(SETS),100000) $(CARGO) test --locked --workspace \
		--test certificates

## Speed against the figures of other tools, in one run on one machine.
bench:
	$(CARGO) bench --locked --workspace --bench '*'

## Two hours for real: ten random sets under every policy, a minute each; what was run stays in
## target/live, to go on from there.
live: build
	sh tests/live_sets.sh $(WARMSET) target/live $(or $(SETS),10) $(or $(FOR),60s)

## An hour for real, with the right to real-time priorities: no rule broken, no event lost, no
## growth of memory.
soak: build
	sh tests/soak.sh $(WARMSET) $(or $(FOR),1h)

## Two minutes and a half for real: 200 tasks on two processors, then a million jobs; memory and
## trace bounded, no event lost.
many: build
	sh tests/many.sh $(WARMSET)

## An hour as root: signals, failing system calls, limits and full disks, done to runs of every
## policy. Nothing may be left over, hang or panic. Called again, it goes on where it was.
faults:
	$(CARGO) build --locked --workspace --bin warmset --bin faults
	sh tests/faults.sh target/debug/faults target/faults

## Tests of the rooms with unsafe memory under AddressSanitizer, whose runtime comes with the
## toolchain. The compiler's option is not stable yet: RUSTC_BOOTSTRAP allows it.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
sanitize:
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address $(CARGO) test --locked --no-fail-fast \
		--target $(HOST) --target-dir target/sanitize \
		-p warmset-sys -p warmset-task -p warmset-machine -p warmset-partition --lib

## The engine in the kernel, tried in guests under QEMU: minutes. Kernel and tools are fetched into
## target/kernel and not installed. make test-kernel CASES=short, or a file of cases; FAULTS="100 7",
## and with such a file CALLS="run-auto 5".
test-kernel:
	CARGO="$(CARGO)" FAULTS="$(FAULTS)" CALLS="$(CALLS)" sh crates/kernel/guest/test.sh target/kernel $(CASES)

## The program for the kernel, compiled anew by the fetched clang: after its source was changed.
kernel-program:
	sh crates/kernel/guest/fetch.sh target/kernel
	sh crates/kernel/guest/bpf.sh target/kernel crates/kernel/src/bpf/main.bpf.o

## A package for Debian 12, in target/debian; and, as root, a trial of it in a fresh Debian of its own.
deb:
	CARGO="$(CARGO)" sh packages/deb.sh
try-deb:
	sh packages/try_deb.sh

## The command as one file without libraries, for Linux on x86-64 or on aarch64, in target/static;
## and whether both answer as the ordinary one does, that for the other machine under qemu-user.
static:
	CARGO="$(CARGO)" sh packages/static.sh x86_64
static-aarch64:
	CARGO="$(CARGO)" sh packages/static.sh aarch64
test-static: build static static-aarch64
	sh tests/static.sh $(WARMSET)

## The documentation as a site with search, in target/book; no link in it is dead.
book:
	CARGO="$(CARGO)" sh packages/book.sh

clean:
	$(CARGO) clean
