// The table of rules.hpp.
#include "schedule/rules.hpp"

#include <algorithm>
#include <array>

#include "triax/text.hpp"

namespace triax::schedule {

namespace {

using enum Pool;
using enum Need::Where;

// clang-format off
constexpr Need kForwardNeeds[] = {{Kind::forward, stage_before}};
constexpr Use  kForwardFills[] = {{stash_i}, {stash_w}, {input_f, +1}, {input_i, +1}, {input_w, +1}};
constexpr Pool kForwardReads[] = {input_f, input_i, input_w};
constexpr Pool kForwardFrees[] = {input_f};

// I may write gradients of parameters that fall out on the way, so it is not only W that accumulates.
constexpr Need kInputNeeds[] = {{Kind::forward, here}, {Kind::backward_input, stage_after}};
constexpr Use  kInputFills[] = {{stash_iw}, {gradient, -1}};
constexpr Pool kInputReads[] = {input_i, input_w, stash_i, stash_w, gradient};
constexpr Pool kInputFrees[] = {input_i, stash_i, gradient};

constexpr Need kWeightNeeds[] = {{Kind::backward_input, here}};
constexpr Pool kWeightReads[] = {input_w, stash_w, stash_iw};
constexpr Pool kWeightFrees[] = {input_w, stash_w, stash_iw};

// B is I then W layer by layer: what would live in stash_iw is gone before the next layer and needs no slot.
constexpr Use  kWholeFills[] = {{gradient, -1}};
constexpr Pool kWholeReads[] = {input_i, input_w, stash_i, stash_w, gradient};
constexpr Pool kWholeFrees[] = {input_i, input_w, stash_i, stash_w, gradient};

constexpr Need kReduceNeeds[] = {{Kind::backward_input, here}, {Kind::backward_weight, here}};
constexpr Need kTiedNeeds[] = {{Kind::reduce_grad, everywhere}};
constexpr Need kNormNeeds[] = {{Kind::reduce_grad, everywhere}, {Kind::reduce_tied, everywhere}};
constexpr Need kStepNeeds[] = {{Kind::norm, everywhere}};

constexpr StreamClass kCompute = StreamClass::compute;
constexpr std::array<Rule, kKinds> kRules{{
    {Kind::forward,         "F",           Scope::microbatch, kCompute, kForwardNeeds, kForwardFills, kForwardReads, kForwardFrees},
    {Kind::backward,        "B",           Scope::microbatch, kCompute, kInputNeeds,   kWholeFills,   kWholeReads,   kWholeFrees},
    {Kind::backward_input,  "I",           Scope::microbatch, kCompute, kInputNeeds,   kInputFills,   kInputReads,   kInputFrees},
    {Kind::backward_weight, "W",           Scope::microbatch, kCompute, kWeightNeeds,  {},            kWeightReads,  kWeightFrees},
    {Kind::reduce_grad,     "REDUCE_GRAD", Scope::stage,      kCompute, kReduceNeeds,  {},            {},            {}},
    {Kind::reduce_tied,     "REDUCE_TIED", Scope::rank,       kCompute, kTiedNeeds,    {},            {},            {}},
    {Kind::norm,            "NORM",        Scope::rank,       kCompute, kNormNeeds,    {},            {},            {}},
    {Kind::opt_step,        "OPT_STEP",    Scope::rank,       kCompute, kStepNeeds,    {},            {},            {}},
}};
// clang-format on

constexpr bool in_order_of_kinds() {
  for (int kind = 0; kind < kKinds; ++kind)
    if (kRules[static_cast<std::size_t>(kind)].kind != static_cast<Kind>(kind)) return false;
  return true;
}
static_assert(in_order_of_kinds());

} // namespace

const Rule& rule(Kind kind) noexcept {
  return kRules[static_cast<std::size_t>(kind)];
}

std::span<const Rule> rules() noexcept {
  return kRules;
}

const char* name_of(Pool pool) noexcept {
  static constexpr const char* kNames[kPools] = {"input_f", "input_i",  "input_w", "stash_i",
                                                 "stash_w", "stash_iw", "gradient"};
  return kNames[static_cast<std::size_t>(pool)];
}

bool touches(Kind kind, Pool pool) noexcept {
  const Rule& of = rule(kind);
  return std::ranges::find(of.reads, pool) != of.reads.end() ||
         std::ranges::any_of(of.fills, [pool](const Use& use) { return use.stage_offset == 0 && use.pool == pool; });
}

std::string action_text(Kind kind, int stage, int microbatch) {
  const Rule& of = rule(kind);
  if (of.scope == Scope::rank) return of.name;
  if (microbatch < 0) return text("{}{}", stage, of.name);
  return text("{}{}{}", stage, of.name, microbatch);
}

} // namespace triax::schedule
