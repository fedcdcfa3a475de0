// SPDX-License-Identifier: Apache-2.0
// Derives values from other values, and reports values that contradict each other.
//
// Blocking: reads the index and tokenizer files of the data. Errors: added to `refusals`.
#pragma once

#include <filesystem>
#include <optional>

#include "config/diagnostics.hpp"
#include "config/values.hpp"
#include "data/blended_dataset.hpp"

namespace triax::config {

/// The keys that name the corpora to train on, or to evaluate on.
struct CorporaKeys {
  const char *path, *paths, *weights;
};
inline constexpr CorporaKeys kTraining{"data.path", "data.paths", "data.weights"};
inline constexpr CorporaKeys kValidation{"data.validation", "data.validation_paths", "data.validation_weights"};

/// With Purpose::plan, the hint of an error that data is missing ends with this.
inline constexpr const char* kPlanWithoutData =
    "\n  or set model.vocab, which otherwise comes from the tokenizer file, to check the run without data";

/// The hint of an error that no key names token files.
inline constexpr const char* kSetDataPath = "set data.path to the prefix of token files; triax data prepare makes them";

/// Precision with loss scaling ([loss_scale]).
inline constexpr const char* kScaledPrecision = "fp16";

/// Empty if no key names a corpus.
data::Corpora corpora_of(const Values& values, const CorporaKeys& keys);

/// Whether both token files of a corpus are missing. A corpus with only one of them is an error.
bool is_absent(const std::filesystem::path& prefix);

struct Intent {
  std::optional<int> world; // number of ranks, if a launcher has set it; otherwise the layout determines it
  Purpose purpose = Purpose::train;
};
void derive(Values& values, const std::filesystem::path& file, const Intent& intent, Diagnostics& refusals);

/// Checks that concern several keys of the core. Skips keys without a value: their errors are already reported.
void cross_check(const Values& values, Purpose purpose, Diagnostics& refusals);

} // namespace triax::config
