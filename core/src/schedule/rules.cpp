// SPDX-License-Identifier: Apache-2.0
// The table of rules.hpp.
#include "schedule/rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

using enum Pool;
using enum Need::Where;

// clang-format off
// With scattered boundaries, a pass needs the gather in place of the receive.
constexpr Condition kIfBeforeHere{kBeforeHere}, kIfAfterHere{kAfterHere}, kIfBeforeElsewhere{kBeforeElsewhere}, kIfAfterElsewhere{kAfterElsewhere};
constexpr Condition kIfForwardOnly{kForwardOnly}, kIfRecomputed{kRecomputed}, kIfNotRecomputed{0, kRecomputed}, kIfSplit{kSplit};
constexpr Condition kIfReceivedF{kBeforeElsewhere, kScattered}, kIfGatheredF{kBeforeElsewhere | kScattered};
constexpr Condition kIfReceivedB{kAfterElsewhere, kScattered}, kIfGatheredB{kAfterElsewhere | kScattered};

constexpr Need kForwardNeeds[] = {{Kind::forward, stage_before, kIfBeforeHere}, {Kind::recv_f, here, kIfReceivedF}, {Kind::gather_f, here, kIfGatheredF}};
constexpr Use  kForwardFills[] = {{stash_i}, {stash_w}, {output, 0, kIfAfterElsewhere},
                                  {input_f, +1, kIfAfterHere}, {input_i, +1, kIfAfterHere}, {input_w, +1, kIfAfterHere}};
constexpr Use  kForwardReads[] = {{input_f}, {input_i}, {input_w}};
// In an evaluation, a forward also frees what backwards would free.
constexpr Use  kForwardFrees[] = {{input_f}, {input_i, 0, kIfForwardOnly}, {input_w, 0, kIfForwardOnly}, {stash_i, 0, kIfForwardOnly}, {stash_w, 0, kIfForwardOnly}};

// I may also compute gradients of parameters, so both I and W accumulate.
constexpr Need kInputNeeds[] = {{Kind::forward, here}, {Kind::backward_input, stage_after, kIfAfterHere}, {Kind::recv_b, here, kIfReceivedB}, {Kind::gather_b, here, kIfGatheredB},
                                  {Kind::recompute, here, kIfRecomputed}};
constexpr Use  kInputFills[] = {{stash_iw, 0, kIfNotRecomputed}, {gradient, -1, kIfBeforeHere}, {input_gradient, 0, kIfBeforeElsewhere}};
constexpr Use  kInputReads[] = {{input_i}, {input_w}, {stash_i}, {stash_w}, {stash_iw, 0, kIfRecomputed}, {gradient}};
constexpr Use  kInputFrees[] = {{input_i}, {stash_i}, {gradient}};

constexpr Need kWeightNeeds[] = {{Kind::backward_input, here}};
constexpr Use  kWeightReads[] = {{input_w}, {stash_w}, {stash_iw}};
constexpr Use  kWeightFrees[] = {{input_w}, {stash_w}, {stash_iw}};

// B runs I, then W for each layer: the tensors of stash_iw are used before the next layer runs and need no slot.
constexpr Use  kWholeFills[] = {{gradient, -1, kIfBeforeHere}, {input_gradient, 0, kIfBeforeElsewhere}};
constexpr Use  kWholeReads[] = {{input_i}, {input_w}, {stash_i}, {stash_w}, {gradient}};
constexpr Use  kWholeFrees[] = {{input_i}, {input_w}, {stash_i}, {stash_w}, {gradient}};

// R waits for no gradient, so it runs while the gradient is sent. What it computes and W reads has its slot from R on.
constexpr Need kRecomputeNeeds[] = {{Kind::forward, here}};
constexpr Use  kRecomputeFills[] = {{stash_iw, 0, kIfSplit}};
constexpr Use  kRecomputeReads[] = {{input_i}, {input_w}, {stash_i}, {stash_w}};

// A receive needs its send to have started. Both ends of an edge have the same order.
constexpr Need kSendFNeeds[] = {{Kind::forward, here}};
constexpr Use  kSendFReads[] = {{output}};
constexpr Use  kSendFFrees[] = {{output}};
constexpr Need kRecvFNeeds[] = {{Kind::send_f, stage_before}};
constexpr Use  kRecvFFills[] = {{input_f}, {input_i}, {input_w}};
constexpr Need kSendBNeeds[] = {{Kind::backward_input, here}};
constexpr Use  kSendBReads[] = {{input_gradient}};
constexpr Use  kSendBFrees[] = {{input_gradient}};
constexpr Need kRecvBNeeds[] = {{Kind::send_b, stage_after}};
constexpr Use  kRecvBFills[] = {{gradient}};

// In place: the parts of the other ranks are added around this rank's part, which was received.
constexpr Need kGatherFNeeds[] = {{Kind::recv_f, here}};
constexpr Use  kGatherFReads[] = {{input_f}, {input_i}, {input_w}};
constexpr Need kGatherBNeeds[] = {{Kind::recv_b, here}};
constexpr Use  kGatherBReads[] = {{gradient}};
constexpr Need kReduceNeeds[] = {{Kind::backward_input, here}, {Kind::backward_weight, here}};
constexpr Need kTiedNeeds[] = {{Kind::reduce_grad, everywhere}};
constexpr Need kNormNeeds[] = {{Kind::reduce_grad, everywhere}, {Kind::reduce_tied, everywhere}};
constexpr Need kStepNeeds[] = {{Kind::norm, everywhere}};
constexpr Need kGatherParamNeeds[] = {{Kind::opt_step, here}};

constexpr StreamClass kCompute = StreamClass::compute, kTransfer = StreamClass::transfer;
constexpr std::array<Rule, kKinds> kRules{{
    {Kind::forward,         "F",           Scope::microbatch, kCompute,  false, kForwardNeeds, kForwardFills, kForwardReads, kForwardFrees},
    {Kind::backward,        "B",           Scope::microbatch, kCompute,  false, kInputNeeds,   kWholeFills,   kWholeReads,   kWholeFrees},
    {Kind::backward_input,  "I",           Scope::microbatch, kCompute,  false, kInputNeeds,   kInputFills,   kInputReads,   kInputFrees},
    {Kind::backward_weight, "W",           Scope::microbatch, kCompute,  false, kWeightNeeds,  {},            kWeightReads,  kWeightFrees},
    {Kind::recompute,       "R",           Scope::microbatch, kCompute,  false, kRecomputeNeeds, kRecomputeFills, kRecomputeReads, {}},
    {Kind::send_f,          "SEND_F",      Scope::microbatch, kTransfer, false, kSendFNeeds,   {},            kSendFReads,   kSendFFrees},
    {Kind::recv_f,          "RECV_F",      Scope::microbatch, kTransfer, false, kRecvFNeeds,   kRecvFFills,   {},            {}},
    {Kind::send_b,          "SEND_B",      Scope::microbatch, kTransfer, false, kSendBNeeds,   {},            kSendBReads,   kSendBFrees},
    {Kind::recv_b,          "RECV_B",      Scope::microbatch, kTransfer, false, kRecvBNeeds,   kRecvBFills,   {},            {}},
    {Kind::gather_f,        "GATHER_F",    Scope::microbatch, kCompute,  false, kGatherFNeeds, {},            kGatherFReads, {}},
    {Kind::gather_b,        "GATHER_B",    Scope::microbatch, kCompute,  false, kGatherBNeeds, {},            kGatherBReads, {}},
    {Kind::reduce_grad,     "REDUCE_GRAD", Scope::stage,      kTransfer, false, kReduceNeeds,  {},            {},            {}},
    {Kind::reduce_tied,     "REDUCE_TIED", Scope::rank,       kCompute,  true,  kTiedNeeds,    {},            {},            {}},
    {Kind::norm,            "NORM",        Scope::rank,       kCompute,  true,  kNormNeeds,    {},            {},            {}},
    {Kind::opt_step,        "OPT_STEP",    Scope::stage,      kCompute,  false, kStepNeeds,    {},            {},            {}},
    {Kind::gather_param,    "GATHER_PARAM", Scope::stage,     kCompute,  false, kGatherParamNeeds, {},        {},            {}},
    {Kind::unshard,         "UNSHARD",     Scope::stage,      kTransfer, false, {},            {},            {},            {}},
    {Kind::reshard,         "RESHARD",     Scope::stage,      kCompute,  false, {},            {},            {},            {}},
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

std::optional<Kind> kind_named(std::string_view name) noexcept {
  const auto found = std::ranges::find_if(kRules, [name](const Rule& of) { return of.name == name; });
  return found == kRules.end() ? std::nullopt : std::optional(found->kind);
}

const char* name_of(Pool pool) noexcept {
  static constexpr const char* kNames[kPools + 2] = {"input_f",        "input_i",     "input_w",  "stash_i",
                                                     "stash_w",        "stash_iw",    "gradient", "output",
                                                     "input_gradient", "accumulator", "weights"};
  return kNames[static_cast<std::size_t>(pool)];
}

StageMap::StageMap(const std::vector<int>& stage_rank) {
  const auto shared = std::make_shared<Shared>();
  for (std::size_t stage = 0; stage < stage_rank.size(); ++stage) {
    TRIAX_REQUIRE(stage_rank[stage] >= 0, "stage {} is on rank {}", stage, stage_rank[stage]);
    const auto rank = static_cast<std::size_t>(stage_rank[stage]);
    if (shared->of_rank.size() <= rank) shared->of_rank.resize(rank + 1);
    Facts facts = 0;
    if (stage > 0) facts |= stage_rank[stage - 1] == stage_rank[stage] ? kBeforeHere : kBeforeElsewhere;
    if (stage + 1 < stage_rank.size())
      facts |= stage_rank[stage + 1] == stage_rank[stage] ? kAfterHere : kAfterElsewhere;
    shared->entries.push_back({stage_rank[stage], static_cast<int>(shared->of_rank[rank].size()), facts});
    shared->of_rank[rank].push_back(static_cast<int>(stage));
  }
  shared_ = shared;
}

void StageMap::refuse(int stage) {
  throw Error(text("stage {} does not exist", stage));
}

std::span<const int> StageMap::stages_of(int rank) const noexcept {
  if (!shared_ || rank < 0 || rank >= static_cast<int>(shared_->of_rank.size())) return {};
  return shared_->of_rank[static_cast<std::size_t>(rank)];
}

bool StageMap::operator==(const StageMap& other) const {
  if (shared_ == other.shared_) return true;
  return stages() == other.stages() && (stages() == 0 || std::ranges::equal(shared_->entries, other.shared_->entries,
                                                                            {}, &StageEntry::rank, &StageEntry::rank));
}

Computing computing_of(Need need, int stage) noexcept {
  stage = stage_of(need, stage);
  while (is_transfer(need.kind)) {
    need = rule(need.kind).needs.front();
    stage = stage_of(need, stage);
  }
  return {need.kind, stage};
}

bool touches(Kind kind, Pool pool) noexcept {
  const Rule& of = rule(kind);
  const auto is_own = [pool](const Use& use) { return use.stage_offset == 0 && use.pool == pool; };
  return std::ranges::any_of(of.reads, is_own) || std::ranges::any_of(of.fills, is_own);
}

std::string action_text(Kind kind, int stage, int microbatch) {
  const Rule& of = rule(kind);
  if (of.scope == Scope::rank) return of.name;
  std::string out = std::to_string(stage) + of.name;
  return microbatch < 0 ? out : out + std::to_string(microbatch);
}

} // namespace triax::schedule
