// SPDX-License-Identifier: Apache-2.0
// triax data: converts text to token files, trains tokenizers.
#include "common/errors_out.hpp"
#include "common/refuse.hpp"
#include "common/verbs.hpp"
#include "data/data_verbs.hpp"
#include "os/deferred_signals.hpp"
#include "os/signal_name.hpp"

namespace triax::app {

int run_data_verb(const Refusals& refused, bool as_json,
                  const std::function<void(const std::function<void()>& stop_if_signaled)>& make) {
  if (!refused.empty()) return refuse(refused, as_json);
  os::DeferredSignals signals;
  try {
    make([&signals] {
      if (const int signal = signals.caught()) throw Stopped(signal);
    });
  } catch (const Stopped& stopped) {
    print_problem(text("stopped by {}: nothing was written", signal_name(stopped.signal)), as_json);
    return 128 + stopped.signal;
  }
  return kDone;
}

void add_data(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("data", "prepares text for training");
  verb->require_subcommand(1);
  add_data_prepare(*verb, status);
  add_data_train_tokenizer(*verb, status);
}

} // namespace triax::app
