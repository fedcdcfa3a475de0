# SPDX-License-Identifier: Apache-2.0
# Links from docs/plugins to files that have no page in the reference become plain text.
s,\[\([^]]*\)\](\.\./[^)]*),\1,g
