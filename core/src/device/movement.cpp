// SPDX-License-Identifier: Apache-2.0
#include "device/movement.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "triax/element_type.hpp"
#include "triax/error.hpp"

namespace triax::device {

namespace {

/// One innermost run of elements: its offset in each view, and its strides.
struct Run {
  std::int64_t to, from, length, to_step, from_step;
};

/// Calls `body` for each run of two views of equal sizes; one run if both are contiguous.
template <class Body>
void for_runs(const TensorView& to, const TensorView& from, Body body) {
  if (to.elements() == 0) return;
  if (to.contiguous() && from.contiguous()) return body(Run{0, 0, to.elements(), 1, 1});
  std::int64_t size[kMaxRank] = {1, 1, 1, 1}, to_stride[kMaxRank] = {}, from_stride[kMaxRank] = {};
  for (int dim = 0; dim < to.rank(); ++dim) {
    const int out_dim = kMaxRank - to.rank() + dim;
    size[out_dim] = to.size(dim);
    to_stride[out_dim] = to.stride(dim);
    from_stride[out_dim] = from.stride(dim);
  }
  for (std::int64_t i = 0; i < size[0]; ++i) {
    for (std::int64_t j = 0; j < size[1]; ++j) {
      for (std::int64_t k = 0; k < size[2]; ++k) {
        body(Run{i * to_stride[0] + j * to_stride[1] + k * to_stride[2],
                 i * from_stride[0] + j * from_stride[1] + k * from_stride[2], size[3], to_stride[3], from_stride[3]});
      }
    }
  }
}

template <class T>
constexpr bool kHalf = std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;

/// Past 2^53 a double cannot hold the last bits. Setting one bit for all lost bits keeps a later rounding correct.
double sticky_double(std::int64_t value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53, kLost = (1 << 10) - 1;
  if (value > -kExact && value < kExact) return static_cast<double>(value);
  return static_cast<double>((value & ~kLost) | ((value & kLost) != 0 ? kLost + 1 : 0));
}

template <class To, class From>
To converted(From value) {
  if constexpr (kHalf<From>) {
    return converted<To>(static_cast<float>(value));
  } else if constexpr (kHalf<To>) {
    if constexpr (std::is_floating_point_v<From>) return To(value);
    if constexpr (std::is_integral_v<From>) return To(sticky_double(value));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) { // to an integer: nearest, ties to even, saturated
    if (std::isnan(value)) return 0;
    const From nearest = std::nearbyint(value);
    if (nearest <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (nearest >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(nearest);
  } else {
    return static_cast<To>(
        std::clamp<std::int64_t>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  }
}

template <class T>
T sum_of(T a, T b) {
  if constexpr (kHalf<T>) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else if constexpr (std::is_integral_v<T>) { // wraps; signed overflow would be undefined
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

} // namespace

void check_movement(std::string_view name, const TensorView& to, const TensorView& from, bool same_type) {
  if (to.shape() == from.shape() && (!same_type || to.dtype() == from.dtype())) return;
  throw Error(text("{} from {} to {}: {} must be equal", name, to_text(from), to_text(to),
                   same_type ? "shapes and dtypes" : "shapes"));
}

void copy_elements(const TensorView& to, const TensorView& from) {
  const auto width = static_cast<std::int64_t>(bytes_of(to.dtype()));
  for_runs(to, from, [&](const Run& run) {
    std::byte* out = to.as<std::byte>() + run.to * width;
    const std::byte* in = from.as<std::byte>() + run.from * width;
    if (run.to_step == 1 && run.from_step == 1) {
      std::memmove(out, in, static_cast<std::size_t>(run.length * width));
      return;
    }
    for (std::int64_t i = 0; i < run.length; ++i) {
      std::memcpy(out + i * run.to_step * width, in + i * run.from_step * width, static_cast<std::size_t>(width));
    }
  });
}

void fill_elements(const TensorView& to, double value) {
  with_type(to.dtype(), [&](auto type) {
    using T = decltype(type);
    const T element = converted<T>(value);
    for_runs(to, to, [&](const Run& run) {
      T* out = to.as<T>() + run.to;
      if (run.to_step == 1) {
        std::fill_n(out, run.length, element);
      } else {
        for (std::int64_t i = 0; i < run.length; ++i) out[i * run.to_step] = element;
      }
    });
  });
}

void convert_elements(const TensorView& to, const TensorView& from) {
  if (to.dtype() == from.dtype()) return copy_elements(to, from);
  with_type(to.dtype(), [&](auto to_type) {
    with_type(from.dtype(), [&](auto from_type) {
      using To = decltype(to_type);
      using From = decltype(from_type);
      for_runs(to, from, [&](const Run& run) {
        To* out = to.as<To>() + run.to;
        const From* in = from.as<From>() + run.from;
        for (std::int64_t i = 0; i < run.length; ++i) out[i * run.to_step] = converted<To>(in[i * run.from_step]);
      });
    });
  });
}

void check_add(const TensorView& to, const TensorView& from) {
  const bool wider = to.dtype() == DType::f32 && (from.dtype() == DType::bf16 || from.dtype() == DType::f16);
  check_movement("add", to, from, !wider);
}

void add_elements(const TensorView& to, const TensorView& from) {
  const auto add = [&](auto to_type, auto from_type) {
    using To = decltype(to_type);
    using From = decltype(from_type);
    for_runs(to, from, [&](const Run& run) {
      To* out = to.as<To>() + run.to;
      const From* in = from.as<From>() + run.from;
      for (std::int64_t i = 0; i < run.length; ++i)
        out[i * run.to_step] = sum_of(out[i * run.to_step], static_cast<To>(in[i * run.from_step]));
    });
  };
  if (to.dtype() == from.dtype()) return with_type(to.dtype(), [&](auto type) { add(type, type); });
  if (from.dtype() == DType::bf16) return add(float{}, Bf16{});
  add(float{}, F16{});
}

} // namespace triax::device
