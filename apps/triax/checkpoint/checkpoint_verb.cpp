// SPDX-License-Identifier: Apache-2.0
// triax checkpoint: lists, shows, verifies, compares, converts and averages checkpoints.
#include "checkpoint/checkpoint_verbs.hpp"
#include "common/errors_out.hpp"
#include "common/refuse.hpp"
#include "common/verbs.hpp"
#include "os/deferred_signals.hpp"
#include "os/signal_name.hpp"
#include "train/find_checkpoint.hpp"

namespace triax::app {

namespace {

constexpr DType kExportTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

} // namespace

std::vector<std::string> export_types() {
  std::vector<std::string> out;
  for (const DType type : kExportTypes) out.emplace_back(name_of(type));
  return out;
}

std::optional<DType> export_type(const std::string& name) {
  for (const DType type : kExportTypes)
    if (name_of(type) == name) return type;
  return std::nullopt;
}

std::unique_ptr<checkpoint::TensorReader> open_checkpoint(const std::string& argument, const char* key, bool as_json) {
  try {
    return std::make_unique<checkpoint::TensorReader>(train::find_checkpoint(argument));
  } catch (const train::CheckpointError& error) {
    refuse(error.code(), error, key, as_json);
  } catch (const Error& error) { // a damaged manifest
    refuse(ErrorCode::kNotReadable, error, key, as_json);
  }
  return nullptr;
}

int run_writing(const std::function<void(const checkpoint::StopRequest& stop)>& work) {
  os::DeferredSignals signals;
  int signal = 0;
  try {
    work([&] {
      if (signal == 0) signal = signals.caught();
      return signal != 0;
    });
  } catch (const Error&) {
    if (signal == 0) throw;
    print_problem(text("stopped by {}: nothing was written", signal_name(signal)));
    return 128 + signal;
  }
  return kDone;
}

void add_checkpoint(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("checkpoint", "shows, verifies, compares and converts checkpoints");
  verb->require_subcommand(1);
  add_checkpoint_list(*verb, status);
  add_checkpoint_show(*verb, status);
  add_checkpoint_verify(*verb, status);
  add_checkpoint_diff(*verb, status);
  add_checkpoint_convert(*verb, status);
  add_checkpoint_average(*verb, status);
}

} // namespace triax::app
