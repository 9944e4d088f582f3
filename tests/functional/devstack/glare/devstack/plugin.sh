#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0

# As Glare's own, it writes its files again in each run, and stops a service of
# another name than it starts.

case "$*" in
    "stack post-config")
        mkdir -p "$GLARE_CONF_DIR"
        cp "$HOST_DIR/stock/glare.conf" "$GLARE_CONF_FILE"
        cp "$HOST_DIR/stock/glare-paste.ini" "$GLARE_PASTE_INI"
        configure_auth_token_middleware "$GLARE_CONF_FILE" glare /var/cache/glare
        ;;
    "stack extra")
        run_process glare \
            "$GLARE_BIN_DIR/glare-api --config-file $GLARE_CONF_FILE"
        ;;
    unstack)
        stop_process glare-api
        ;;
esac
