// SPDX-License-Identifier: Apache-2.0
// The conformance suite of models. Its clauses M1 to M28 are at the end of triax/model.hpp. The checks run the layers
// of a small model on the host, pass by pass, without an engine.
//
// Threads, blocking, errors: as check.hpp. find_support() calls the plugin, which may crash: call it in a child
// process. Ownership: checks keep a copy of the subject.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "triax/conformance/check.hpp"
#include "triax/conformance/probed_call.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"
#include "triax/options.hpp"

namespace triax::conformance {

/// The requests that a model and a kernel set support together.
struct ModelSupport {
  std::int64_t vocab = 0;    // the first size that the model accepts of 11, 16, 64, 257, 50257
  std::vector<DType> types;  // types of activations that the model supports on one rank, the most precise first
  std::vector<int> tensor;   // the supported numbers of tensor ranks, of 2 and 4
  std::vector<int> sequence; // those that are supported with sequence parallelism
  bool recompute = false, generate = false, pipeline = false;
};

/// The model under test.
struct ModelSubject {
  std::string name; // "model-mine"
  /// Creates an object, with the options below.
  std::function<Object<Model>(const PluginContext&)> model;
  Options options;          // options that make a small model
  bool has_dropout = false; // whether these options ask for dropout
  /// Creates a kernel set of the host that computes, such as kernels-reference.
  std::function<Object<KernelSet>()> kernels;
  RankSetup ranks;      // how tensor ranks are set up; no backend: checks of several ranks are skipped
  ModelSupport support; // the result of find_support()
  /// The number of allocations that the calling thread has made (allocations.hpp); empty: not counted.
  std::function<std::size_t()> allocations;
};

/// Asks the model and the kernel set. The reasons for refusing every request are added to `refusals`. `guard`: runs
/// each call of them, except their constructors and destructors.
ModelSupport find_support(const ModelSubject& subject, Refusals& refusals, const CallGuard& guard = {});

/// The checks of models that apply to it.
std::vector<Check> model_checks(const ModelSubject& subject);

} // namespace triax::conformance
