// SPDX-License-Identifier: Apache-2.0
// A model whose tables have the mistake that TRIAX_TEST_TABLES names.
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "grouped_model.hpp"

namespace triax::test_models {

namespace {

bool has_mistake(std::string_view name) {
  const char* const chosen = std::getenv("TRIAX_TEST_TABLES");
  return chosen && name == chosen;
}

class Wrong final : public Grouped {
 public:
  using Grouped::Grouped;

  std::vector<HfArchitecture> architectures() const override {
    std::vector<HfArchitecture> out = Grouped::architectures();
    out[0].name = "WrongForCausalLM";
    out[0].model_type = "wrong";
    if (has_mistake("key twice")) out[0].keys.push_back(out[0].keys[1]);
    if (has_mistake("architecture twice")) out.push_back(out[0]);
    if (has_mistake("exception")) throw std::runtime_error("no tables today");
    if (has_mistake("crash")) std::abort();
    if (has_mistake("same type")) {
      out.push_back(out[0]);
      out[1].name = "OtherForCausalLM";
    }
    return out;
  }

  std::vector<HfParameter> parameters(std::string_view architecture) const override {
    std::vector<HfParameter> out = Grouped::parameters(architecture);
    if (has_mistake("row twice")) out.push_back(out[1]);
    if (has_mistake("two rows")) out.push_back({.parameter = "block 0/up.weight", .tensors = {"up"}});
    if (has_mistake("no row")) out.erase(out.begin());
    if (has_mistake("two numbers")) out[1].tensors[0] = "model.layers.{}.{}.weight";
    if (has_mistake("no number")) out[3].tensors[0] = "down.weight";
    if (has_mistake("groups")) out[1].groups = 3;
    if (has_mistake("tensor twice")) out[4].tensors = out[0].tensors;
    if (has_mistake("exception in parameters")) throw std::runtime_error("no rows today");
    return out;
  }
};

} // namespace

} // namespace triax::test_models

TRIAX_PLUGIN(triax::Model, triax::test_models::Wrong, "model-wrong", "0.1.0", "parameters with wrong tables",
             triax::test_models::kOptions)
