# Two commands do everything on a fresh Debian or Ubuntu machine with Rust: `make demo` and `make test`.
# Both install what they need by package name and skip what is there.

CARGO ?= cargo
export CATAMOUNT_COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)

.PHONY: help build install wheel docs screenshots demo test lint bench test-integrations test-cluster \
  setup-demo setup-test fuzz fuzz-terms verdicts faults kills

help:
	@echo 'make demo               the main job on the embedded prover: train, search, report (about ten minutes on two cores)'
	@echo 'make test               formatting, lints and every test that needs no multi-gigabyte install'
	@echo 'make test-integrations  tests against PyTorch, transformers, PEFT, Ray and llama.cpp'
	@echo 'make test-cluster       every fault of a Ray cluster (some of them take minutes of waiting)'
	@echo 'make install            the catamount command into Cargo'"'"'s folder of programs'
	@echo 'make wheel              a Python wheel with the package and the command, in dist/'
	@echo 'make docs               the documentation as a site, in target/book'
	@echo 'make screenshots        pictures of a report (STUDY=FOLDER) for docs/images'
	@echo 'make bench              every benchmark, as ratios within one run'
	@echo 'make fuzz               100,000 mutated files against every parser (minutes)'
	@echo 'make fuzz-terms         altered Lean proofs, judged here and by nanoda (20 minutes)'
	@echo 'make verdicts           4,000 mutated Metamath databases and proofs, judged here and by metamath'
	@echo 'make kills              a study that is killed fifty times, against one that was left alone'
	@echo 'make faults             the program among failures that are not its own: servers, disks, limits, signals'
	@echo 'make lint               formatting and lints alone'

build:
	$(CARGO) build --release -p catamount

install:
	$(CARGO) install --locked --path crates/catamount

wheel:
	scripts/wheel.sh

docs:
	scripts/docs.sh

STUDY ?= demo-out
screenshots:
	CATAMOUNT_STUDY=$(abspath $(STUDY)) CATAMOUNT_SCREENSHOTS=$(CURDIR)/docs/images \
	  $(CARGO) test --release --workspace --test browser pictures -- --ignored

setup-demo:
	@scripts/install.sh metamath:metamath metamath-databases fc-list:fontconfig fonts-dejavu-core

setup-test: setup-demo
	@scripts/install.sh node:nodejs npm:npm chromium:chromium python3:python3 python3-venv

demo: setup-demo build
	scripts/demo.sh

lint:
	$(CARGO) fmt --all --check
	scripts/lines.py
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings

# Examples are compiled by the lints already; to make programs of them as well costs minutes.
test: setup-test lint
	$(CARGO) test --release --workspace --lib --bins --tests
	scripts/tools.sh
	$(CARGO) test --release --workspace --doc
	python/run_tests.sh

# The whole workspace's program, which after `make test` is there.
test-integrations: setup-test
	$(CARGO) build --release --workspace --bins
	scripts/integrations.sh

test-cluster: setup-test
	CATAMOUNT_CLUSTER_FAULTS=1 python/run_integration_tests.sh -k "test_ray_study or test_ray_provers"

bench: setup-demo build
	scripts/bench.sh

fuzz:
	$(CARGO) run --release -p catamount-hostile --bin fuzz

fuzz-terms: setup-test
	CATAMOUNT_FUZZ_MINUTES=$${CATAMOUNT_FUZZ_MINUTES:-20} \
	  $(CARGO) test --release --workspace --test suite no_altered_proof -- --nocapture

verdicts: setup-demo
	$(CARGO) run --release -p catamount-hostile --bin verdicts

faults: setup-demo build
	@scripts/install.sh faketime:faketime || echo 'without faketime, the clock stays as it is'
	$(CARGO) run --release -p catamount-hostile --bin faults

kills: setup-demo
	CATAMOUNT_KILLS=$${CATAMOUNT_KILLS:-50} \
	  $(CARGO) test --release --workspace --test interrupted killed -- --nocapture
