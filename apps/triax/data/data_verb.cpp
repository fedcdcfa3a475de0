// SPDX-License-Identifier: Apache-2.0
// triax data: converts text to token files, trains tokenizers.
#include <ostream>

#include "common/errors_json.hpp"
#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "data/data_verbs.hpp"
#include "os/deferred_signals.hpp"
#include "os/signal_name.hpp"

namespace triax::app {

namespace {

void print_refused(const Refusals& refused, bool as_json) {
  std::vector<config::Diagnostic> errors;
  errors.reserve(refused.size());
  for (const Refusal& refusal : refused) errors.push_back(config::diagnose(refusal, {}));
  print_errors(errors);
  if (as_json) result_out() << errors_line(errors) << '\n';
}

} // namespace

int run_data_verb(const Refusals& refused, bool as_json,
                  const std::function<void(const std::function<void()>& stop_if_signaled)>& make) {
  if (!refused.empty()) {
    print_refused(refused, as_json);
    return kRefused;
  }
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
