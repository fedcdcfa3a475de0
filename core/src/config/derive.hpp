// SPDX-License-Identifier: Apache-2.0
// The values that follow from others, and the refusals of values that do not fit together.
//
// Threads: one. Ownership: values. Blocking: looks at the data's files. Errors: refusals.
#pragma once

#include <filesystem>
#include <optional>

#include "config/refusals.hpp"
#include "config/values.hpp"
#include "data/blended_dataset.hpp"

namespace triax::config {

/// The keys that name the corpora to train on, or to evaluate on.
struct CorporaKeys {
  const char *path, *paths, *weights;
};
inline constexpr CorporaKeys kTraining{"data.path", "data.paths", "data.weights"};
inline constexpr CorporaKeys kValidation{"data.validation", "data.validation_paths", "data.validation_weights"};

/// The precision whose gradients need [loss_scale].
inline constexpr const char* kScaledPrecision = "fp16";

/// None if no key names one.
data::Corpora corpora_of(const Values& values, const CorporaKeys& keys);

/// Whether a corpus has neither of its token files; one that has one of the two is broken.
bool is_absent(const std::filesystem::path& prefix);

struct Intent {
  std::optional<int> world; // the number of ranks, where a launcher has decided it; else what the layout asks for
  Purpose purpose = Purpose::train;
};
void derive(Values& values, const std::filesystem::path& file, const Intent& intent, Refusals& refusals);

/// What concerns several of the core's keys. Keys without a value are left out: they have been refused.
void check_together(const Values& values, Purpose purpose, Refusals& refusals);

} // namespace triax::config
