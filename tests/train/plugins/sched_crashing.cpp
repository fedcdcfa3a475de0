// SPDX-License-Identifier: Apache-2.0
// sched-crashing: a scheduler that ends or blocks its process in the call that its options select.
#include <unistd.h>

#include <csignal>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_string("where", nullptr, "create|supports|rows|destroy", "the call that fails"),
    option_string("how", "crash", "crash|exit|loop|refuse|misname|flood", "what it does"),
};

class Crashing final : public Scheduler {
 public:
  explicit Crashing(const PluginContext& context)
      : where_(context.options.text("where")), how_(context.options.text("how")) {
    fail_in("create");
  }
  ~Crashing() override { fail_in("destroy"); }
  Refusals supports(const PipelineShape&) const override {
    fail_in("supports");
    Refusals out;
    if (where_ == "supports" && how_ == "refuse") out.add(Refusal{}); // without a reason
    if (where_ == "supports" && how_ == "misname")
      out.add(make_refusal(ErrorCode::kUnsupported, {"schedule.placment"}, "too many chunks"));
    return out;
  }
  Schedule rows(const PipelineShape& shape) const override {
    fail_in("rows");
    Schedule out(shape, one_stage_per_rank(shape));
    if (how_ == "flood") out.row(0).assign((std::size_t{1} << 21) + 1, forward(0, 0));
    return out;
  }

 private:
  void fail_in(std::string_view where) const {
    if (where != where_ || how_ == "refuse" || how_ == "misname" || how_ == "flood") return;
    while (how_ == "loop") pause();
    if (how_ == "exit") _exit(3);
    std::signal(SIGSEGV, SIG_DFL); // a sanitizer's handler would turn the signal into an exit
    std::raise(SIGSEGV);
  }
  std::string where_, how_;
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, Crashing, "sched-crashing", "0.1.0", "ends its process", kOptions)
