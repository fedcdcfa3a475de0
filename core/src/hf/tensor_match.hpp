// SPDX-License-Identifier: Apache-2.0
// Which tensors of a model's folder are those of a model's parameters, by the rows of HfMapping. All others must be
// copies or buffers that the architecture names.
//
// Threads: one. Ownership: results refer to the tensors. Blocking: check_copies() reads. Errors: refusals, one for each
// cause; Error for a copy that differs.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/stop_request.hpp"
#include "hf/mapped_model.hpp"
#include "hf/model_tensors.hpp"
#include "triax/error.hpp"

namespace triax::hf {

struct TensorMatch {
  struct Copy {
    const ModelTensors::Tensor *tensor, *of;
  };
  std::vector<std::vector<const ModelTensors::Tensor*>> sources; // of each parameter, the tensors of its row
  std::vector<Copy> copies;
  Refusals refusals; // if there are any, the rest is not complete
};

/// The model that the tensors of a folder must fit.
struct MatchedModel {
  const std::string& plugin; // for messages
  const HfArchitecture& architecture;
  const std::vector<StoredParameter>& parameters;
};

TensorMatch match_tensors(const ModelTensors& tensors, const MatchedModel& model);

/// Throws Error for a copy whose bits differ.
void check_copies(const ModelTensors& tensors, const TensorMatch& match, const std::string& plugin,
                  const checkpoint::StopRequest& stop);

} // namespace triax::hf
