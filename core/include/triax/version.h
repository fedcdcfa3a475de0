/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's version; CMake reads it from here. */
#ifndef TRIAX_VERSION_H
#define TRIAX_VERSION_H

/* Major, minor and patch. */
#define TRIAX_VERSION "0.1.0"

#endif
