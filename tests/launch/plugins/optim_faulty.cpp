// SPDX-License-Identifier: Apache-2.0
// optim-faulty: an optimizer that fails or hangs on one rank, in the call that its options select. It does not change
// the weights.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("rank", nullptr, 0, 1000, "the rank that fails"),
    option_string("where", nullptr, "create|prepare|step",
                  "made; given its parameters, after the groups were joined; "
                  "in its second step"),
    option_bool("hangs", "false", "in place of failing: it never returns from that call"),
    option_bool("exits", "false", "in place of failing: it ends the process"),
    option_string("gone", "", nullptr, "a file that is there once one has been destroyed"),
    option_bool("prints", "false", "it prints to standard output"),
    option_bool("aborts", "false", "a destructor of its library aborts"),
};

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
  OptimizerTraits traits() const override { return {}; }
  void prepare(std::span<const ParameterShard>) override {
    // Planning makes the first call.
    if (++prepared_ == 2) fail_in("prepare");
  }
  void step(std::span<const ParameterShard>, const StepArgs&, KernelSet&) override {
    if (++steps_ == 3) fail_in("step");
  }

 private:
  void fail_in(std::string_view where) const {
    while (where == where_ && hangs_) ::pause();
    if (where == where_ && exits_) std::exit(0); // NOLINT(concurrency-mt-unsafe): that is the fault
    if (where == where_) throw Error("out of luck", {}, "try again");
  }
  std::string gone_;
  bool hangs_, exits_;
  std::string where_;
  int prepared_ = 0, steps_ = 0;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, Faulty, "optim-faulty", "0.1.0", "fails on one rank", kOptions)
