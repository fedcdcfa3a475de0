// SPDX-License-Identifier: Apache-2.0
// Copy, fill, convert and add on the host, for every type and for strided views.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/half.hpp"

namespace triax {
namespace {

using testing::ElementsAre;

constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

class Movement : public testing::Test {
 protected:
  TensorView make(DType dtype, const Shape& shape) {
    const TensorView sized(nullptr, dtype, shape);
    memory.push_back(device->allocate(sized.bytes() + 1, MemoryKind::host));
    return {memory.back()->data(), dtype, shape};
  }
  template <class T>
  TensorView make(DType dtype, const Shape& shape, const std::vector<T>& values) {
    const TensorView view = make(dtype, shape);
    for (std::size_t i = 0; i < values.size(); ++i) view.as<T>()[i] = values[i];
    return view;
  }
  std::vector<double> values(const TensorView& view) {
    const TensorView wide = make(DType::f64, view.shape());
    device->convert(wide, view, *stream);
    return {wide.as<double>(), wide.as<double>() + wide.elements()};
  }
  template <class T>
  static std::vector<T> raw(const TensorView& view) {
    return {view.as<T>(), view.as<T>() + view.elements()};
  }

  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Stream> stream = device->make_stream("main");
  std::vector<std::unique_ptr<Memory>> memory;
};

TEST_F(Movement, FillsCopiesAndAddsEveryType) {
  for (const DType dtype : kAll) {
    const TensorView a = make(dtype, {2, 3}), b = make(dtype, {2, 3});
    device->fill(a, 5, *stream);
    device->copy(b, a, *stream);
    device->add(b, a, *stream);
    EXPECT_EQ(values(b), std::vector<double>(6, 10)) << name_of(dtype);
    device->upload(a, b, *stream);
    EXPECT_EQ(values(a), std::vector<double>(6, 10)) << name_of(dtype);
    device->download(a, b, *stream);
  }
}

TEST_F(Movement, ConvertsEveryPairOfTypes) {
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      const TensorView a = make(from, {3}), b = make(to, {3});
      device->fill(a, 7, *stream);
      device->convert(b, a, *stream);
      EXPECT_THAT(values(b), ElementsAre(7, 7, 7)) << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST_F(Movement, WorksOnStridedViewsOfFourDimensions) {
  const Shape shape{2, 3, 4, 5};
  std::vector<float> numbers(120);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const TensorView from = make(DType::f32, shape, numbers);
  const TensorView part = from.slice(0, 1, 2).slice(1, 1, 3).slice(2, 0, 2).slice(3, 2, 4);
  const TensorView dense = make(DType::f32, {1, 2, 2, 2});
  device->copy(dense, part, *stream);
  EXPECT_THAT(raw<float>(dense), ElementsAre(82, 83, 87, 88, 102, 103, 107, 108));
  device->add(part, dense, *stream); // doubles the part, and does not change the rest
  EXPECT_EQ(numbers[81], from.as<float>()[81]);
  EXPECT_EQ(from.as<float>()[82], 164);
  EXPECT_EQ(from.as<float>()[108], 216);
  const TensorView doubles = make(DType::f64, {1, 2, 2, 2});
  device->convert(doubles, part, *stream);
  EXPECT_EQ(doubles.as<double>()[7], 216);
  device->fill(part, -1, *stream);
  EXPECT_EQ(std::accumulate(from.as<float>(), from.as<float>() + 120, 0.0f), 7140 - 760 - 8);
}

TEST_F(Movement, CopiesTransposed) {
  const TensorView from = make<float>(DType::f32, {2, 3}, {0, 1, 2, 3, 4, 5});
  const TensorView transposed(from.data(), DType::f32, {3, 2}, {1, 3});
  const TensorView dense = make(DType::f32, {3, 2});
  device->copy(dense, transposed, *stream);
  EXPECT_THAT(raw<float>(dense), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(Movement, NothingMovesWhereAViewIsEmpty) {
  const TensorView a = make(DType::f32, {4, 0, 3}), b = make(DType::f32, {4, 0, 3});
  device->copy(a, b, *stream);
  device->add(a, b, *stream);
  device->fill(a, 1, *stream);
}

TEST_F(Movement, NarrowingRoundsToNearestEven) {
  const TensorView from = make<double>(DType::f64, {4}, {1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-8 + 0x1p-40, -1 - 0x1p-8});
  const TensorView to = make(DType::bf16, {4});
  device->convert(to, from, *stream);
  EXPECT_THAT(values(to), ElementsAre(1, 1 + 0x1p-6, 1 + 0x1p-7, -1));
  const TensorView halves = make<double>(DType::f64, {5}, {0.5, 1.5, 2.5, -0.5, -2.5});
  const TensorView integers = make(DType::i32, {5});
  device->convert(integers, halves, *stream);
  EXPECT_THAT(raw<std::int32_t>(integers), ElementsAre(0, 2, 2, 0, -2));
}

TEST_F(Movement, IntegersAreHeldToTheirRange) {
  const TensorView from =
      make<double>(DType::f64, {4}, {1e30, -1e30, std::nan(""), std::numeric_limits<double>::infinity()});
  for (const DType dtype : {DType::i32, DType::i64}) {
    const TensorView to = make(dtype, {4});
    device->convert(to, from, *stream);
    const double most = dtype == DType::i32 ? 2147483647.0 : 9223372036854775807.0;
    EXPECT_THAT(values(to), ElementsAre(most, -most - (dtype == DType::i32 ? 1 : 0), 0, most));
  }
  const TensorView wide = make<std::int64_t>(DType::i64, {3}, {300, -1, 255});
  const TensorView bytes = make(DType::u8, {3});
  device->convert(bytes, wide, *stream);
  EXPECT_THAT(values(bytes), ElementsAre(255, 0, 255));
}

TEST_F(Movement, LargeIntegersRoundOnce) {
  // Just above the midpoint of two bf16 values. Through a double it would become a tie, and round down.
  const std::int64_t above_tie = (std::int64_t{257} << 54) + 1;
  const TensorView from = make<std::int64_t>(DType::i64, {2}, {above_tie, -above_tie});
  const TensorView to = make(DType::bf16, {2});
  device->convert(to, from, *stream);
  EXPECT_THAT(values(to), ElementsAre(258 * 0x1p54, -258 * 0x1p54));
}

TEST_F(Movement, AddsHalvesToFloats) {
  std::vector<float> sums = {0.25f, 1e-4f};
  std::vector<Bf16> bf16 = {Bf16(1.0f), Bf16(256.0f)};
  std::vector<F16> f16 = {F16(0.5f), F16(2.0f)};
  const TensorView to(sums.data(), DType::f32, {2});
  device->add(to, TensorView(bf16.data(), DType::bf16, {2}), *stream);
  device->add(to, TensorView(f16.data(), DType::f16, {2}), *stream);
  EXPECT_EQ(sums, (std::vector<float>{1.75f, 1e-4f + 256.0f + 2.0f}));
  EXPECT_THROW(device->add(TensorView(bf16.data(), DType::bf16, {2}), to, *stream), Error);
}

TEST_F(Movement, AddWrapsIntegersAndRoundsHalves) {
  const TensorView a = make<std::int32_t>(DType::i32, {1}, {std::numeric_limits<std::int32_t>::max()});
  const TensorView one = make<std::int32_t>(DType::i32, {1}, {1});
  device->add(a, one, *stream);
  EXPECT_EQ(a.as<std::int32_t>()[0], std::numeric_limits<std::int32_t>::min());
  const TensorView big = make(DType::bf16, {1}), small = make(DType::bf16, {1});
  device->fill(big, 256, *stream);
  device->fill(small, 1, *stream);
  device->add(big, small, *stream); // 257 is between 256 and 258
  EXPECT_THAT(values(big), ElementsAre(256));
}

TEST_F(Movement, RefusesOtherSizesAndTypes) {
  const TensorView a = make(DType::f32, {2, 3}), b = make(DType::f32, {3, 2}), c = make(DType::f64, {2, 3});
  try {
    device->copy(a, b, *stream);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "copy from f32[3, 2] to f32[2, 3]: shapes and dtypes must be equal");
  }
  EXPECT_THROW(device->copy(a, c, *stream), Error);
  EXPECT_THROW(device->add(a, c, *stream), Error);
  EXPECT_THROW(device->convert(a, b, *stream), Error);
}

TEST_F(Movement, WaitsForItsStream) {
  const TensorView a = make(DType::f32, {1});
  struct Writing final : HostTask {
    explicit Writing(const TensorView& its_view) : view(its_view) {}
    bool advance() noexcept override {
      if (++calls < 4) return false;
      view.as<float>()[0] = 42;
      return true;
    }
    TensorView view;
    int calls = 0;
  } writing(a);
  stream->post(writing);
  const TensorView b = make(DType::f32, {1});
  device->copy(b, a, *stream);
  EXPECT_EQ(b.as<float>()[0], 42);
}

} // namespace
} // namespace triax
