// SPDX-License-Identifier: Apache-2.0
// An optimizer that was built before OptimizerRequest got its last field: CMakeLists.txt removes the field from the
// header that this file includes.
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>

namespace {

static_assert(sizeof(triax::OptimizerRequest) == sizeof(triax::DType), "the header is today's");

class OlderOptimizer final : public triax::Optimizer {
 public:
  triax::Refusals supports(const triax::OptimizerRequest& request) const override {
    if (request.master == triax::DType::f64) return {};
    return triax::make_refusal(triax::ErrorCode::kUnsupported, {"train.precision"}, "f64 only");
  }
  triax::OptimizerTraits traits() const override { return {{"momentum"}}; }
  void prepare(std::span<const triax::ParameterShard>) override {}
  void step(std::span<const triax::ParameterShard>, const triax::StepArgs&, triax::KernelSet&) override {}
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, OlderOptimizer, "older-optimizer", "1.0.0", "an optimizer of an older interface",
             nullptr)
