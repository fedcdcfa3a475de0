// SPDX-License-Identifier: Apache-2.0
#include "fault.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <triax/error.hpp>

namespace triax::comm_faulty {

namespace {

struct NamedFault {
  std::string_view name;
  Fault fault;
};
constexpr NamedFault kNames[] = {
    {"none", Fault::none},
    {"delay", Fault::delay},
    {"reorder", Fault::reorder},
    {"drop", Fault::drop},
    {"corrupt", Fault::corrupt},
    {"fail", Fault::fail},
    {"die", Fault::die},
    {"hang_post", Fault::hang_post},
    {"hang_advance", Fault::hang_advance},
    {"hang_join", Fault::hang_join},
    {"refuse", Fault::refuse},
};

/// FNV-1a: std::hash may differ between builds.
std::uint32_t hash_of(std::string_view text) noexcept {
  std::uint32_t hash = 2166136261u;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

} // namespace

const char* name_of(Fault fault) noexcept {
  const auto* const found = std::ranges::find(kNames, fault, &NamedFault::fault);
  return found == std::end(kNames) ? "unknown" : found->name.data();
}

FaultOptions FaultOptions::read(const Options& options) {
  FaultOptions out;
  const std::string& name = options.text("fault");
  const auto* const found = std::ranges::find(kNames, std::string_view(name), &NamedFault::name);
  TRIAX_REQUIRE(found != std::end(kNames), "fault = \"{}\" is not in the option table", name);
  out.fault = found->fault;
  out.rank = static_cast<int>(options.integer("rank"));
  out.axis = options.text("axis");
  out.at = options.integer("at");
  out.probability = options.number("probability");
  out.seed = static_cast<std::uint64_t>(options.integer("seed"));
  out.delay_s = options.number("delay_ms") / 1000;
  if (out.at > 0 && out.probability != 1)
    throw Error(text("at = {} selects one post, but probability = {} selects posts at random", out.at, out.probability),
                {}, "leave one of them out");
  return out;
}

InjectionPlan::InjectionPlan(const FaultOptions& options, const Group& group)
    : options_(options),
      is_here_(options.fault != Fault::none && options.selects(group) &&
               options.selects(group.ranks[static_cast<std::size_t>(group.group_rank)])),
      key_(philox_key(options.seed, RandomPurpose::test)),
      group_(hash_of(group.id)),
      rank_(static_cast<std::uint32_t>(group.ranks[static_cast<std::size_t>(group.group_rank)])) {}

Injection InjectionPlan::next(bool receives) noexcept {
  Injection out{.post = ++posts_};
  if (!is_here_ || (options_.fault == Fault::corrupt && !receives)) return out;
  ++counted_;
  const PhiloxBlock drawn =
      philox({static_cast<std::uint32_t>(posts_), static_cast<std::uint32_t>(posts_ >> 32), group_, rank_}, key_);
  out.is_injected = options_.at > 0 ? counted_ == static_cast<std::uint64_t>(options_.at)
                                    : static_cast<double>(uniform(drawn[0])) < options_.probability;
  out.duration = drawn[1];
  out.bit = drawn[2];
  out.order = drawn[3];
  return out;
}

} // namespace triax::comm_faulty
