// SPDX-License-Identifier: Apache-2.0
// kernels-text-event: the reference kernels, which inject a signal or a NaN after `at` generated tokens.
#include <unistd.h>

#include <csignal>
#include <limits>
#include <triax/plugin.hpp>
#include <triax/reference_kernels.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("at", "4", 1, 1'000'000, "embeddings of one token on this rank before the fault"),
    option_int("rank", "-1", -1, 1'000'000, "the rank with the fault; -1: all"),
    option_string("event", "nan", "stop|user|nan", "SIGTERM of the process, SIGUSR2 of the rank's thread, or a NaN"),
};

/// Only generation embeds a single token: training steps embed at least two.
class TextEventKernels final : public reference_kernels::ReferenceKernels {
 public:
  explicit TextEventKernels(const PluginContext& context)
      : ReferenceKernels("kernels-text-event"),
        event_(context.options.text("event")),
        is_here_(context.options.integer("rank") < 0 || context.options.integer("rank") == context.rank),
        left_(context.options.integer("at")) {}

 protected:
  void do_embed_fwd(const EmbedFwd& args, const OpContext& context) override {
    ReferenceKernels::do_embed_fwd(args, context);
    if (!is_here_ || args.tokens.elements() != 1 || --left_ >= 0) return;
    if (event_ == "nan") args.y.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    if (event_ == "stop" && left_ == -1) ::kill(::getpid(), SIGTERM);
    if (event_ == "stop") ::usleep(20'000); // give the signal thread time to run
    if (event_ == "user" && left_ == -1) std::raise(SIGUSR2);
  }

 private:
  const std::string event_;
  const bool is_here_;
  std::int64_t left_;
};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, TextEventKernels, "kernels-text-event", "0.1.0",
             "the reference kernels with a fault during generation", kOptions)
