// SPDX-License-Identifier: Apache-2.0
// Public calls of a communicator: what they refuse, count, and pass to the backend.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/error_of.hpp"
#include "triax/communicator.hpp"

namespace triax {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using triax::test::error_of;

/// Records the calls that pass the checks.
class Recording final : public Communicator {
 public:
  explicit Recording(Group group) : Communicator(std::move(group)) {}
  std::vector<std::string> calls, posted;
  bool fails = false;

  void progress() noexcept override {}
  void barrier(Deadline) override {}
  void abort(std::string_view) noexcept override {}

 protected:
  Work do_collective(const Collective& collective, const TensorView&, const TensorView&, Stream&,
                     ActionId action) override {
    posted.push_back(to_text(collective));
    count(payload_of(collective));
    return fails ? failed_post("the group has failed", action) : keep(name_of(collective.kind), action);
  }
  Work do_exchange(std::span<const Transfer>, Stream&, ActionId action) override { return keep("exchange", action); }

 private:
  Work keep(const char* name, ActionId action) {
    calls.emplace_back(name);
    return {{}, action};
  }
};

class Checks : public ::testing::Test {
 protected:
  TensorView floats(std::int64_t elements) { return {memory, DType::f32, {elements}}; }
  TensorView elsewhere(std::int64_t elements) { return {memory + 100, DType::f32, {elements}}; }

  float memory[200] = {};
  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Stream> stream = device->make_stream("main");
  Recording comm{{"tensor", "tensor.0", {0, 1, 2}, 1}};
};

TEST_F(Checks, GoodCallsComeThroughAndAreCounted) {
  EXPECT_EQ(comm.all_reduce(floats(4), floats(4), Reduce::sum, *stream, 9).action, 9u);
  comm.reduce_scatter(floats(6), elsewhere(2), Reduce::sum, *stream);
  comm.reduce_scatter(floats(6), floats(6).slice(0, 2, 4), Reduce::sum, *stream); // in place
  comm.all_gather(floats(2), elsewhere(6), *stream);
  comm.all_gather(floats(6).slice(0, 2, 4), floats(6), *stream); // in place
  comm.all_to_all(floats(6), elsewhere(6), *stream);
  comm.broadcast(floats(4), 2, *stream);
  const Transfer transfers[] = {{Direction::send, 0, 0, floats(3)}, {Direction::receive, 2, 1, elsewhere(3)}};
  comm.exchange(transfers, *stream);
  EXPECT_THAT(comm.calls, ElementsAre("all_reduce", "reduce_scatter", "reduce_scatter", "all_gather", "all_gather",
                                      "all_to_all", "broadcast", "exchange"));
  EXPECT_EQ(comm.stats().ops, 8u);
}

TEST_F(Checks, ElementsMustFit) {
  EXPECT_EQ(error_of([&] { comm.all_reduce(floats(4), elsewhere(5), Reduce::sum, *stream); }),
            "group tensor.0: all_reduce: out f32[5] has 5 elements; 4 are needed in a group of 3");
  EXPECT_THAT(error_of([&] { comm.reduce_scatter(floats(7), elsewhere(2), Reduce::sum, *stream); }),
              HasSubstr("in f32[7] has 7 elements; 6 are needed"));
  EXPECT_THAT(error_of([&] { comm.all_gather(floats(2), elsewhere(5), *stream); }), HasSubstr("6 are needed"));
  EXPECT_THAT(error_of([&] { comm.all_to_all(floats(7), elsewhere(7), *stream); }),
              HasSubstr("all_to_all: in f32[7] has 7 elements, which is not divisible by the group size 3\n"
                        "  pad the view to a multiple of the group size"));
  EXPECT_THAT(error_of([&] { comm.all_to_all(floats(6), elsewhere(3), *stream); }), HasSubstr("out f32[3]"));
  EXPECT_TRUE(comm.calls.empty());
  EXPECT_EQ(comm.stats().ops, 0u);
}

TEST_F(Checks, TypesMustBeEqual) {
  const TensorView halves(memory + 100, DType::bf16, {4});
  EXPECT_THAT(error_of([&] { comm.all_reduce(floats(4), halves, Reduce::sum, *stream); }),
              HasSubstr("all_reduce: in f32[4] and out bf16[4] differ in type"));
}

TEST_F(Checks, BytesAreNotReduced) {
  const TensorView in(memory, DType::u8, {3}), out(memory + 100, DType::u8, {3}), part(memory + 100, DType::u8, {1});
  EXPECT_EQ(error_of([&] { comm.all_reduce(in, out, Reduce::max, *stream); }),
            "group tensor.0: all_reduce: u8[3] cannot be reduced\n  reduce f32, f64, bf16, f16, i32 or i64");
  EXPECT_THAT(error_of([&] { comm.reduce_scatter(in, part, Reduce::sum, *stream); }), HasSubstr("cannot be reduced"));
  comm.all_to_all(in, out, *stream);
  comm.broadcast(in, 0, *stream);
  EXPECT_THAT(comm.calls, ElementsAre("all_to_all", "broadcast"));
}

TEST_F(Checks, ACollectiveIsDescribedAndItsPayloadCounted) {
  // Member 1 of 3. All_reduce of 7 elements: it reduces elements 2 and 3, and sends 5 parts and 2 results to 2 members.
  comm.all_reduce(floats(7), elsewhere(7), Reduce::max, *stream);
  EXPECT_EQ(comm.stats().bytes_out, 4u * (5 + 2 * 2));
  EXPECT_EQ(comm.stats().bytes_in, 4u * (5 + 2 * 2));
  const auto added = [&](const std::function<void()>& call) {
    const CommStats before = comm.stats();
    call();
    return std::pair(comm.stats().bytes_out - before.bytes_out, comm.stats().bytes_in - before.bytes_in);
  };
  EXPECT_EQ(added([&] { comm.reduce_scatter(floats(6), elsewhere(2), Reduce::sum, *stream); }), std::pair(16ul, 16ul));
  EXPECT_EQ(added([&] { comm.all_gather(floats(2), elsewhere(6), *stream); }), std::pair(16ul, 16ul));
  EXPECT_EQ(added([&] { comm.all_to_all(floats(6), elsewhere(6), *stream); }), std::pair(16ul, 16ul));
  EXPECT_EQ(added([&] { comm.broadcast(floats(3), 0, *stream); }), std::pair(0ul, 12ul));
  EXPECT_EQ(added([&] { comm.broadcast(floats(3), 1, *stream); }), std::pair(24ul, 0ul));
  EXPECT_THAT(comm.posted, ElementsAre("all_reduce of 7 f32 (max)", "reduce_scatter of 6 f32 (sum)",
                                       "all_gather of 2 f32", "all_to_all of 6 f32", "broadcast of 3 f32 from member 0",
                                       "broadcast of 3 f32 from member 1"));
}

TEST_F(Checks, ACollectiveMustDescribeItsViews) {
  using Kind = Collective::Kind;
  const auto posted = [&](const Collective& collective, const TensorView& out) {
    return error_of([&] { comm.post(collective, floats(4), out, *stream); });
  };
  EXPECT_THAT(posted({.kind = Kind::all_reduce, .dtype = DType::f32, .elements = 5}, elsewhere(4)),
              HasSubstr("all_reduce: in is f32[4], but the collective is all_reduce of 5 f32 (sum)"));
  EXPECT_THAT(posted({.kind = Kind::all_reduce, .dtype = DType::bf16, .elements = 4}, elsewhere(4)),
              HasSubstr("the collective is all_reduce of 4 bf16 (sum)"));
  EXPECT_THAT(posted({.kind = Kind::broadcast, .dtype = DType::f32, .elements = 4}, elsewhere(4)),
              HasSubstr("broadcast: in f32[4] and out f32[4] are not the same view"));
  EXPECT_TRUE(comm.calls.empty());
}

TEST_F(Checks, APostAfterTheGroupHasFailedGivesAFailedEvent) {
  comm.fails = true;
  for (int i = 0; i < 2; ++i) {
    const Work work = comm.all_reduce(floats(4), elsewhere(4), Reduce::sum, *stream, 7);
    EXPECT_EQ(work.action, 7);
    EXPECT_THAT(error_of([&] { device->wait(work.event, deadline_in(1)); }), HasSubstr("the group has failed"));
  }
  EXPECT_EQ(comm.stats().ops, 0u) << "a failed post is not an operation";
}

TEST_F(Checks, ViewsMustBeContiguous) {
  const TensorView strided(memory, DType::f32, {4}, {2});
  EXPECT_THAT(error_of([&] { comm.all_reduce(strided, elsewhere(4), Reduce::sum, *stream); }),
              HasSubstr("in f32[4] is not contiguous"));
  EXPECT_THAT(error_of([&] { comm.broadcast(strided, 0, *stream); }),
              HasSubstr("broadcast: in f32[4] is not contiguous"));
  const Transfer transfer{Direction::receive, 0, 0, strided};
  EXPECT_THAT(error_of([&] { comm.exchange({&transfer, 1}, *stream); }), HasSubstr("received view f32[4]"));
}

TEST_F(Checks, MembersMustBeInTheGroup) {
  EXPECT_THAT(error_of([&] { comm.broadcast(floats(4), 3, *stream); }),
              HasSubstr("broadcast: root 3 is outside a group of 3"));
  const Transfer outside{Direction::send, -1, 0, floats(3)}, self{Direction::send, 1, 0, floats(3)};
  EXPECT_THAT(error_of([&] { comm.exchange({&outside, 1}, *stream); }), HasSubstr("exchange: peer -1 is outside"));
  EXPECT_THAT(error_of([&] { comm.exchange({&self, 1}, *stream); }), HasSubstr("peer 1 is this member itself"));
}

TEST_F(Checks, OverlapIsRefusedButForExactlyInPlace) {
  const TensorView shifted(memory + 1, DType::f32, {4});
  EXPECT_THAT(error_of([&] { comm.all_reduce(floats(4), shifted, Reduce::sum, *stream); }), HasSubstr("overlap"));
  EXPECT_THAT(error_of([&] { comm.reduce_scatter(floats(6), floats(2), Reduce::sum, *stream); }), HasSubstr("overlap"));
  EXPECT_THAT(error_of([&] { comm.all_gather(floats(2), floats(6), *stream); }), HasSubstr("overlap"));
  EXPECT_THAT(error_of([&] { comm.all_to_all(floats(6), floats(6), *stream); }), HasSubstr("overlap"));
}

TEST_F(Checks, HasNoExtensionsOfItsOwn) {
  EXPECT_EQ(comm.extension("anything"), nullptr);
}

} // namespace
} // namespace triax
