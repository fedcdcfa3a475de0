// SPDX-License-Identifier: Apache-2.0
// Times of the checkpoints of one rank, which trains a GPT on the CPU: about 2 GB of weights and state of AdamW. Each
// call measures one thing, so that scripts/bench-checkpoint can alternate with dd:
//
//   save    writes a checkpoint from the state itself, from the call to the renamed folder on the disk
//   load    compares that checkpoint with its checksums and fills the rank's state from it
//   stall   what a step waits for when a checkpoint is saved asynchronously, and memcpy of the same bytes, in turns
//
// Prints a line per measurement: its name, seconds, bytes of the tensors.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "control/job_local_store.hpp"
#include "os/descriptor.hpp"
#include "train/checkpoints.hpp"
#include "train/tiny_run.hpp"

namespace {

using namespace triax;

struct BenchOptions {
  std::string folder;
  int layers = 14, hidden = 1024, turns = 4;
};

config::RunConfig config_of(const BenchOptions& options, bool async) {
  test::TinyRun run;
  run.keys["model.layers"] = text("{}", options.layers);
  run.keys["model.hidden"] = text("{}", options.hidden);
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.steps"] = "1000";
  run.keys["run.dir"] = text("\"{}\"", options.folder);
  run.keys["checkpoint.async"] = async ? "true" : "false";
  run.keys["checkpoint.every"] = "1";
  run.keys["checkpoint.keep"] = "1";
  return run.config();
}

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// A rank that is ready for its first step.
class Bench {
 public:
  Bench(const BenchOptions& options, bool async)
      : run_(config_of(options, async)),
        rank_(run_, layout_, 0, store_, null_log(), {.training = &source_, .held_out = &source_}),
        checkpoints_(run_, layout_, 0, rank_, store_, null_log()),
        kept_(rank_.kept()) {}

  void save() {
    rank_.step();
    time("save", [&] {
      checkpoints_.save();
      checkpoints_.wait();
    });
    if (checkpoints_.missing() > 0) throw Error("the checkpoint was not saved", run_.folder.string());
  }

  /// `cold`: the page cache has none of the files.
  void load(bool cold) {
    std::string line;
    if (cold) drop_pages();
    time("load", [&] { line = checkpoints_.restore(); });
    if (line.empty()) throw Error("has no checkpoint", run_.folder.string(), "run bench_checkpoint save first");
  }

  /// The order of the two changes from turn to turn.
  void stall(int turns) {
    const std::unique_ptr<Memory> copy = rank_.device().allocate(train::staging_bytes(kept_), MemoryKind::host);
    std::memset(copy->data(), 1, copy->bytes()); // its pages exist before it is measured
    for (int turn = 0; turn < turns; ++turn) {
      rank_.step();
      if (turn % 2 == 0) time("memcpy", [&] { copy_state(*copy); });
      time("stall", [&] { checkpoints_.save(); });
      checkpoints_.wait();
      if (turn % 2 == 1) time("memcpy", [&] { copy_state(*copy); });
    }
    if (checkpoints_.missing() > 0) throw Error("a checkpoint was not saved", run_.folder.string());
  }

 private:
  template <class Body>
  void time(const char* what, Body body) {
    const Clock::time_point began = Clock::now();
    body();
    std::printf("%s %.6f %zu\n", what, seconds_since(began), train::staging_bytes(kept_));
    std::fflush(stdout);
  }

  void drop_pages() const {
    for (const checkpoint::FoundCheckpoint& found : checkpoint::checkpoints_in(run_.checkpoints()))
      for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(found.folder)) {
        const os::Descriptor descriptor(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
        if (!descriptor || ::posix_fadvise(descriptor.number(), 0, 0, POSIX_FADV_DONTNEED) != 0)
          throw Error("cannot be dropped from the page cache", file.path().string());
      }
  }

  void copy_state(const Memory& to) const {
    auto* next = static_cast<std::byte*>(to.data());
    for (const executor::KeptTensor& tensor : kept_) {
      const TensorView from = tensor.view.slice(0, tensor.saved.first, tensor.saved.first + tensor.saved.count);
      std::memcpy(next, from.as<const std::byte>(), from.bytes());
      next += from.bytes();
    }
  }

  const config::RunConfig run_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  control::LocalStore store_;
  test::TinySource source_;
  train::Rank rank_;
  train::Checkpoints checkpoints_;
  const std::vector<executor::KeptTensor> kept_;
};

} // namespace

int main(int count, char** arguments) {
  CLI::App program("Times of the checkpoints of one rank");
  BenchOptions options;
  program.add_option("--layers", options.layers, "of the GPT");
  program.add_option("--hidden", options.hidden, "width of the GPT");
  program.add_option("--folder", options.folder, "of the run")->required();
  program.require_subcommand(1);
  const CLI::App* const save = program.add_subcommand("save", "write a checkpoint");
  CLI::App* const load = program.add_subcommand("load", "read the checkpoint");
  CLI::App* const stall = program.add_subcommand("stall", "what a step waits for, and memcpy, in turns");
  stall->add_option("--turns", options.turns, "number of checkpoints");
  bool cold = false;
  load->add_flag("--cold", cold, "drop it from the page cache first");
  CLI11_PARSE(program, count, arguments);
  try {
    Bench bench(options, stall->parsed());
    if (save->parsed()) bench.save();
    if (load->parsed()) bench.load(cold);
    if (stall->parsed()) bench.stall(options.turns);
  } catch (const std::exception& error) {
    std::printf("ERROR OCCURRED: %s\n", error.what());
    return 1;
  }
  return 0;
}
