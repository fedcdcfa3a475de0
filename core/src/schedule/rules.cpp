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
constexpr Need kForwardNeeds[] = {{Kind::forward, stage_before, If::before_here}, {Kind::recv_f, here, If::before_elsewhere}};
constexpr Use  kForwardFills[] = {{stash_i}, {stash_w}, {output, 0, If::after_elsewhere},
                                  {input_f, +1, If::after_here}, {input_i, +1, If::after_here}, {input_w, +1, If::after_here}};
constexpr Pool kForwardReads[] = {input_f, input_i, input_w};
constexpr Pool kForwardFrees[] = {input_f};
constexpr Pool kForwardOnlyFrees[] = {input_f, input_i, input_w, stash_i, stash_w};

// I may also compute gradients of parameters, so both I and W accumulate.
constexpr Need kInputNeeds[] = {{Kind::forward, here}, {Kind::backward_input, stage_after, If::after_here}, {Kind::recv_b, here, If::after_elsewhere}};
constexpr Use  kInputFills[] = {{stash_iw}, {gradient, -1, If::before_here}, {input_gradient, 0, If::before_elsewhere}};
constexpr Pool kInputReads[] = {input_i, input_w, stash_i, stash_w, gradient};
constexpr Pool kInputFrees[] = {input_i, stash_i, gradient};

constexpr Need kWeightNeeds[] = {{Kind::backward_input, here}};
constexpr Pool kWeightReads[] = {input_w, stash_w, stash_iw};
constexpr Pool kWeightFrees[] = {input_w, stash_w, stash_iw};

// B runs I, then W for each layer: the tensors of stash_iw are used before the next layer runs and need no slot.
constexpr Use  kWholeFills[] = {{gradient, -1, If::before_here}, {input_gradient, 0, If::before_elsewhere}};
constexpr Pool kWholeReads[] = {input_i, input_w, stash_i, stash_w, gradient};
constexpr Pool kWholeFrees[] = {input_i, input_w, stash_i, stash_w, gradient};

// A receive needs its send to have started. Both ends of an edge have the same order.
constexpr Need kSendFNeeds[] = {{Kind::forward, here}};
constexpr Pool kSendFReads[] = {output};
constexpr Need kRecvFNeeds[] = {{Kind::send_f, stage_before}};
constexpr Use  kRecvFFills[] = {{input_f}, {input_i}, {input_w}};
constexpr Need kSendBNeeds[] = {{Kind::backward_input, here}};
constexpr Pool kSendBReads[] = {input_gradient};
constexpr Need kRecvBNeeds[] = {{Kind::send_b, stage_after}};
constexpr Use  kRecvBFills[] = {{gradient}};

// In place: the parts of the other ranks are added around this rank's part, which was received.
constexpr Need kGatherFNeeds[] = {{Kind::recv_f, here}};
constexpr Pool kGatherFReads[] = {input_f, input_i, input_w};
constexpr Need kGatherBNeeds[] = {{Kind::recv_b, here}};
constexpr Pool kGatherBReads[] = {gradient};
constexpr Need kForwardNeedsGathered[] = {{Kind::forward, stage_before, If::before_here}, {Kind::gather_f, here, If::before_elsewhere}};
constexpr Need kInputNeedsGathered[] = {{Kind::forward, here}, {Kind::backward_input, stage_after, If::after_here}, {Kind::gather_b, here, If::after_elsewhere}};

constexpr Need kReduceNeeds[] = {{Kind::backward_input, here}, {Kind::backward_weight, here}};
constexpr Need kTiedNeeds[] = {{Kind::reduce_grad, everywhere}};
constexpr Need kNormNeeds[] = {{Kind::reduce_grad, everywhere}, {Kind::reduce_tied, everywhere}};
constexpr Need kStepNeeds[] = {{Kind::norm, everywhere}};

constexpr StreamClass kCompute = StreamClass::compute, kTransfer = StreamClass::transfer;
constexpr std::array<Rule, kKinds> kRules{{
    {Kind::forward,         "F",           Scope::microbatch, kCompute,  false, kForwardNeeds, kForwardFills, kForwardReads, kForwardFrees},
    {Kind::backward,        "B",           Scope::microbatch, kCompute,  false, kInputNeeds,   kWholeFills,   kWholeReads,   kWholeFrees},
    {Kind::backward_input,  "I",           Scope::microbatch, kCompute,  false, kInputNeeds,   kInputFills,   kInputReads,   kInputFrees},
    {Kind::backward_weight, "W",           Scope::microbatch, kCompute,  false, kWeightNeeds,  {},            kWeightReads,  kWeightFrees},
    {Kind::send_f,          "SEND_F",      Scope::microbatch, kTransfer, false, kSendFNeeds,   {},            kSendFReads,   kSendFReads},
    {Kind::recv_f,          "RECV_F",      Scope::microbatch, kTransfer, false, kRecvFNeeds,   kRecvFFills,   {},            {}},
    {Kind::send_b,          "SEND_B",      Scope::microbatch, kTransfer, false, kSendBNeeds,   {},            kSendBReads,   kSendBReads},
    {Kind::recv_b,          "RECV_B",      Scope::microbatch, kTransfer, false, kRecvBNeeds,   kRecvBFills,   {},            {}},
    {Kind::gather_f,        "GATHER_F",    Scope::microbatch, kCompute,  false, kGatherFNeeds, {},            kGatherFReads, {}},
    {Kind::gather_b,        "GATHER_B",    Scope::microbatch, kCompute,  false, kGatherBNeeds, {},            kGatherBReads, {}},
    {Kind::reduce_grad,     "REDUCE_GRAD", Scope::stage,      kTransfer, false, kReduceNeeds,  {},            {},            {}},
    {Kind::reduce_tied,     "REDUCE_TIED", Scope::rank,       kCompute,  true,  kTiedNeeds,    {},            {},            {}},
    {Kind::norm,            "NORM",        Scope::rank,       kCompute,  true,  kNormNeeds,    {},            {},            {}},
    {Kind::opt_step,        "OPT_STEP",    Scope::rank,       kCompute,  false, kStepNeeds,    {},            {},            {}},
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
  static constexpr const char* kNames[kPools] = {"input_f",  "input_i",  "input_w", "stash_i",       "stash_w",
                                                 "stash_iw", "gradient", "output",  "input_gradient"};
  return kNames[static_cast<std::size_t>(pool)];
}

StageMap::StageMap(std::vector<int> stage_rank) {
  const auto shared = std::make_shared<Shared>();
  shared->rank = std::move(stage_rank);
  shared->number.reserve(shared->rank.size());
  for (std::size_t stage = 0; stage < shared->rank.size(); ++stage) {
    TRIAX_REQUIRE(shared->rank[stage] >= 0, "stage {} is on rank {}", stage, shared->rank[stage]);
    const auto rank = static_cast<std::size_t>(shared->rank[stage]);
    if (shared->of_rank.size() <= rank) shared->of_rank.resize(rank + 1);
    shared->number.push_back(static_cast<int>(shared->of_rank[rank].size()));
    shared->of_rank[rank].push_back(static_cast<int>(stage));
  }
  shared_ = shared;
}

std::span<const int> StageMap::stages_of(int rank) const noexcept {
  if (!shared_ || rank < 0 || rank >= static_cast<int>(shared_->of_rank.size())) return {};
  return shared_->of_rank[static_cast<std::size_t>(rank)];
}

bool StageMap::operator==(const StageMap& other) const {
  if (shared_ == other.shared_) return true;
  return stages() == other.stages() && (stages() == 0 || shared_->rank == other.shared_->rank);
}

const StageMap::Shared& StageMap::at(int stage) const {
  TRIAX_REQUIRE(shared_, "stage {} does not exist", stage);
  return *shared_;
}

bool StageMap::beside(int stage, int neighbour, bool here) const {
  return neighbour >= 0 && neighbour < stages() && (rank_of(neighbour) == rank_of(stage)) == here;
}

bool StageMap::holds(If condition, int stage) const {
  switch (condition) {
    case If::always:
      return true;
    case If::before_here:
    case If::before_elsewhere:
      return beside(stage, stage - 1, condition == If::before_here);
    case If::after_here:
    case If::after_elsewhere:
      break;
  }
  return beside(stage, stage + 1, condition == If::after_here);
}

Computing computing_of(Need need, int stage) noexcept {
  stage = stage_of(need, stage);
  while (is_transfer(need.kind)) {
    need = rule(need.kind).needs.front();
    stage = stage_of(need, stage);
  }
  return {need.kind, stage};
}

std::span<const Need> needs(Kind kind, Boundaries boundaries) noexcept {
  if (boundaries == Boundaries::scattered) {
    if (kind == Kind::forward) return kForwardNeedsGathered;
    if (kind == Kind::backward || kind == Kind::backward_input) return kInputNeedsGathered;
  }
  return rule(kind).needs;
}

std::span<const Pool> frees(Kind kind, bool forward_only) noexcept {
  if (kind == Kind::forward && forward_only) return kForwardOnlyFrees;
  return rule(kind).frees;
}

bool touches(Kind kind, Pool pool) noexcept {
  const Rule& of = rule(kind);
  return std::ranges::find(of.reads, pool) != of.reads.end() ||
         std::ranges::any_of(of.fills, [pool](const Use& use) { return use.stage_offset == 0 && use.pool == pool; });
}

std::string action_text(Kind kind, int stage, int microbatch) {
  const Rule& of = rule(kind);
  if (of.scope == Scope::rank) return of.name;
  std::string out = std::to_string(stage) + of.name;
  return microbatch < 0 ? out : out + std::to_string(microbatch);
}

} // namespace triax::schedule
