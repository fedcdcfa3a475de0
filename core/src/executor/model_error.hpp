// SPDX-License-Identifier: Apache-2.0
// Error of a model whose descriptions contradict each other or the layout: a defect of the model, which no plugin call
// reports.
#pragma once

#include <string_view>

#include "triax/error.hpp"

namespace triax::executor {

/// Names the layer or the parameter. The dry run adds the plugin and the next step.
class ModelError final : public Error {
 public:
  using Error::Error;
};

/// Throws ModelError with text(pattern, arguments...) unless `holds`.
template <class... Args>
void require_of_model(bool holds, std::string_view pattern, const Args&... arguments) {
  if (!holds) throw ModelError(text(pattern, arguments...));
}

} // namespace triax::executor
