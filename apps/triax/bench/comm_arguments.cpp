// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_arguments.hpp"

#include "bench/byte_sizes.hpp"
#include "common/flag_checks.hpp"

namespace triax::app {

namespace {

constexpr int kMaxRanks = 1024;
constexpr int kDefaultRanks = 2;
constexpr SideWords kCommWords = {"communicator", "COMMUNICATOR", CommBackend::kKind, "comm"};
constexpr DType kTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

std::vector<std::string> type_names() {
  std::vector<std::string> out;
  for (const DType type : kTypes) out.emplace_back(name_of(type));
  return out;
}

DType type_named(const std::string& name) {
  for (const DType type : kTypes)
    if (name_of(type) == name) return type;
  return DType::f32; // the flag's check has refused other names
}

void read_sizes(const CommArguments& arguments, RequestedComm& out) {
  try {
    out.plan.sizes = bench::parse_sizes(arguments.sizes);
  } catch (const Error& error) {
    out.refusals.add({ErrorCode::kInvalidValue, {"--sizes"}, text("--sizes: {}", error.message()), error.hint()});
  }
}

} // namespace

std::shared_ptr<CommArguments> add_comm_flags(CLI::App& verb) {
  auto out = std::make_shared<CommArguments>();
  add_side_flags(verb, out->sides, kCommWords);
  verb.add_option("--op", out->operation, "operation [all_reduce]")
      ->type_name("OPERATION")
      ->check(one_of(bench::comm_operation_names()));
  verb.add_option("--ranks", out->ranks, "number of ranks [2; under mpirun, srun or torchrun, theirs]")
      ->type_name("N")
      ->check(integer_in(2, kMaxRanks));
  verb.add_option("--sizes", out->sizes, "bytes: a list 4K,64K,1M, or a range 4K:64M[:FACTOR] [4K:64M]")
      ->type_name("SIZES");
  verb.add_option("--dtype", out->dtype, "type of the elements [f32]")->type_name("TYPE")->check(one_of(type_names()));
  verb.add_option("--window", out->window, "messages in flight of --op send [32]")
      ->type_name("N")
      ->check(integer_in(1, 1024));
  verb.add_option("--kernels", out->kernels, "kernel set whose device holds the buffers [the host's memory]")
      ->type_name("KERNELS")
      ->check(not_empty());
  verb.add_option("--timeout-s", out->timeout_s, "time limit of a call, and for all ranks to join, in seconds [60]")
      ->type_name("SECONDS")
      ->check(number_in(1, 3600));
  return out;
}

Refusals check_world(const CommArguments& arguments, int world) {
  if (world >= 2 && world == arguments.ranks.value_or(world)) return {};
  return make_refusal(ErrorCode::kConflict, {"--ranks"}, "the launcher has started {} rank{}{}", world,
                      world == 1 ? "" : "s",
                      arguments.ranks ? text(", but --ranks is {}", *arguments.ranks) : std::string())
      .with_hint("start at least 2 ranks, and leave --ranks out");
}

RequestedComm read_comm(const CommArguments& arguments, std::optional<int> world, plugin::FirstLoad first_load) {
  RequestedComm out;
  bench::CommPlan& plan = out.plan;
  plan.operation = bench::find_comm_operation(arguments.operation).value_or(plan.operation);
  plan.dtype = type_named(arguments.dtype);
  plan.ranks = world.value_or(arguments.ranks.value_or(kDefaultRanks));
  plan.window = arguments.window;
  plan.rounds = arguments.sides.rounds;
  plan.turn_s = arguments.sides.turn_ms * 1e-3;
  plan.timeout_s = arguments.timeout_s;
  read_sizes(arguments, out);
  plan.may_be_equal = arguments.sides.same;
  plan.sides = load_sides(arguments.sides, kCommWords, first_load, out.refusals);
  if (!arguments.kernels.empty())
    out.kernels =
        bench::load_side({"--kernels", arguments.kernels, KernelSet::kKind, "kernels", {}}, first_load, out.refusals);
  if (out.refusals.empty()) out.refusals.add(bench::check(plan));
  return out;
}

std::vector<std::string> rank_arguments(const CommArguments& arguments, int ranks) {
  std::vector<std::string> out = {"bench",       "comm",
                                  "--op",        arguments.operation,
                                  "--ranks",     triax::to_text(ranks),
                                  "--sizes",     arguments.sizes,
                                  "--dtype",     arguments.dtype,
                                  "--window",    triax::to_text(arguments.window),
                                  "--timeout-s", triax::to_text(arguments.timeout_s)};
  append_side_flags(arguments.sides, out);
  if (!arguments.kernels.empty()) out.insert(out.end(), {"--kernels", arguments.kernels});
  return out;
}

std::map<std::string, std::string> keys_of(const CommArguments& arguments, int ranks) {
  std::map<std::string, std::string> out;
  const std::vector<std::string> all = rank_arguments(arguments, ranks);
  for (std::size_t i = 2; i + 1 < all.size(); i += 2) out[all[i]] += (out[all[i]].empty() ? "" : " ") + all[i + 1];
  return out;
}

} // namespace triax::app
