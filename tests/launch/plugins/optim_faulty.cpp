// SPDX-License-Identifier: Apache-2.0
// optim-faulty: an optimizer that fails or hangs on one rank, in the call that its options select. It does not change
// the weights.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("rank", nullptr, 0, 1000, "the rank that fails"),
    option_string("where", nullptr, "create|traits|plan|prepare|step",
                  "constructor; traits(); prepare() in the preflight, or after the groups were joined; step()"),
    option_int("step", "2", 1, 1000, "the step of this start that fails"),
    option_bool("hangs", "false", "in place of failing: it never returns from that call"),
    option_bool("exits", "false", "in place of failing: it calls exit()"),
    option_bool("exits_immediately", "false", "in place of failing: it calls _exit(), which runs no exit handlers"),
    option_int("status", "0", 0, 255, "exit status"),
    option_bool("throws_int", "false", "it fails with an exception that is not derived from std::exception"),
    option_bool("closes", "false", "in place of failing: it closes the files of the process"),
    option_string(
        "crashes", "no", "no|null|stack|abort|thread|thread-null",
        "in place of failing: it writes to a null pointer, calls itself without end or aborts; or a thread that "
        "it starts aborts or writes to a null pointer"),
    option_string("gone", "", nullptr, "a file that the destructor writes"),
    option_bool("prints", "false", "it prints to standard output"),
    option_bool("aborts", "false", "a destructor of its library aborts"),
};

/// Uses up the stack.
__attribute__((noinline)) int call_without_end(volatile int* at) {
  volatile int here[1024] = {};
  if (*at == 42) return 0;
  here[0] = *at;
  return call_without_end(here) + here[1];
}

[[noreturn]] void crash(std::string_view how) {
  volatile int value = 0;
  volatile int* volatile nowhere = nullptr;
  if (how == "null") *nowhere = 1;
  if (how == "stack") call_without_end(&value);
  if (how == "thread") std::thread([] { std::abort(); }).join();
  if (how == "thread-null") std::thread([&] { *nowhere = 1; }).join();
  std::abort();
}

/// Its destructor is run by exit().
struct AtExit {
  ~AtExit() {
    if (aborts) std::abort();
  }
  std::atomic<bool> aborts{false};
} at_exit;

class Faulty final : public Optimizer {
 public:
  explicit Faulty(const PluginContext& context)
      : gone_(context.options.text("gone")),
        hangs_(context.options.flag("hangs")),
        exits_(context.options.flag("exits")),
        exits_immediately_(context.options.flag("exits_immediately")),
        throws_int_(context.options.flag("throws_int")),
        closes_(context.options.flag("closes")),
        status_(static_cast<int>(context.options.integer("status"))),
        failing_step_(context.options.integer("step")),
        crashes_(context.options.text("crashes")),
        where_(context.rank == context.options.integer("rank") ? context.options.text("where") : "") {
    if (context.options.flag("aborts")) at_exit.aborts = true;
    if (context.options.flag("prints")) {
      std::printf("printf of a plugin\n");
      std::cout << "cout of a plugin\n";
    }
    fail_in("create");
  }
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;
  ~Faulty() override {
    if (!gone_.empty()) std::ofstream{gone_};
  }
  Refusals supports(const OptimizerRequest&) const override { return {}; }
  OptimizerTraits traits() const override {
    fail_in("traits");
    return {};
  }
  void prepare(std::span<const ParameterShard>) override {
    ++prepared_; // the first call is the dry run's
    if (prepared_ == 1) fail_in("plan");
    if (prepared_ == 2) fail_in("prepare");
  }
  void step(std::span<const ParameterShard>, const StepArgs&, KernelSet&) override {
    if (steps_++ == failing_step_) fail_in("step"); // the first call is the dry run's
  }

 private:
  void fail_in(std::string_view where) const {
    while (where == where_ && hangs_) ::pause();
    if (where == where_ && exits_) std::exit(status_); // NOLINT(concurrency-mt-unsafe): that is the fault
    if (where == where_ && exits_immediately_) ::_exit(status_);
    if (where == where_ && throws_int_) throw 42;
    if (where == where_ && crashes_ != "no") crash(crashes_);
    if (where == where_ && closes_) {
      for (int file = 3; file < 256; ++file) ::close(file);
      return;
    }
    if (where == where_) throw Error("out of luck", {}, "try again");
  }
  std::string gone_;
  bool hangs_, exits_, exits_immediately_, throws_int_, closes_;
  int status_;
  std::int64_t failing_step_;
  std::string crashes_, where_;
  int prepared_ = 0;
  std::int64_t steps_ = 0;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, Faulty, "optim-faulty", "0.1.0", "fails on one rank", kOptions)
