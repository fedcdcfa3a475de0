// SPDX-License-Identifier: Apache-2.0
#include "executor/tie_check.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "executor/model_error.hpp"
#include "triax/text.hpp"

namespace triax::executor {

namespace {

std::string tie_text(std::span<const Tie> ties, std::size_t index) {
  if (index >= ties.size()) return "nothing";
  const Tie& tie = ties[index];
  return text("\"{}\" of layer {} and \"{}\" of layer {}", tie.param_a, tie.layer_a, tie.param_b, tie.layer_b);
}

bool are_same_tie(const Tie& a, const Tie& b) {
  return a.layer_a == b.layer_a && a.param_a == b.param_a && a.layer_b == b.layer_b && a.param_b == b.param_b;
}

std::string init_text(const Init& init) {
  if (init.kind == Init::Kind::normal) return text("normal with std {}", init.std);
  return init.kind == Init::Kind::ones ? "ones" : "zeros";
}

std::string axes_text(const std::vector<std::string>& axes) {
  std::string out;
  for (const std::string& axis : axes) out += text("{}{}", out.empty() ? "" : ", ", axis);
  return out.empty() ? "no axis" : out;
}

std::string cuts_text(const std::vector<Cut>& cuts) {
  std::string out;
  for (const Cut& cut : cuts)
    out +=
        text("{}[{}, {}) of dimension {} over axis {}", out.empty() ? "" : ", ", cut.begin, cut.end, cut.dim, cut.axis);
  return out.empty() ? "none" : out;
}

struct TieProperty {
  std::string_view name;
  std::string value;
  bool operator==(const TieProperty&) const = default;
};

std::vector<TieProperty> tie_properties_of(const ParamSpec& spec, TieProperties which) {
  std::vector<TieProperty> out = {{"shape", to_text(spec.global)},
                                  {"initial values", init_text(spec.init)},
                                  {"random site", text("{}", spec.site)},
                                  {"weight decay", spec.decay ? "yes" : "no"},
                                  {"partial gradients", axes_text(spec.partial)}};
  if (which == TieProperties::model) return out;
  out.push_back({"stored shape", to_text(spec.local)});
  out.push_back({"cuts", cuts_text(spec.cuts)});
  return out;
}

const ParamSpec& tied_spec_of(const TiedLayer& of, const std::string& param, const std::string& tied_to) {
  const std::span<const ParamSpec> params = of.layer.params();
  const auto found = std::ranges::find(params, param, &ParamSpec::name);
  require_of_model(found != params.end(), "{}/{} is tied to {}, but {} does not describe it", of.layer.name(), param,
                   tied_to, of.rank);
  return *found;
}

} // namespace

void check_tie_lists(std::span<const Tie> ties, const std::string& rank, std::span<const Tie> others,
                     const std::string& other_rank) {
  const auto [first, second] = std::ranges::mismatch(ties, others, are_same_tie);
  if (first == ties.end() && second == others.end()) return;
  const auto index = static_cast<std::size_t>(first - ties.begin());
  throw ModelError(text("ties() differs between ranks: entry {} is {} on {}, but {} on {}", index + 1,
                        tie_text(ties, index), rank, tie_text(others, index), other_rank));
}

void check_tied_parameter(const std::string& param, const std::string& tied_to, const TiedLayer& one,
                          const TiedLayer& other, TieProperties properties) {
  const std::vector<TieProperty> of_one = tie_properties_of(tied_spec_of(one, param, tied_to), properties),
                                 of_other = tie_properties_of(tied_spec_of(other, param, tied_to), properties);
  const auto [a, b] = std::ranges::mismatch(of_one, of_other);
  if (a == of_one.end()) return;
  throw ModelError(text("{}/{} is tied to {}, and ranks describe it differently: {}: {} on {}, but {} on {}",
                        one.layer.name(), param, tied_to, a->name, a->value, one.rank, b->value, other.rank));
}

} // namespace triax::executor
