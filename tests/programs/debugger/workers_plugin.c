// Large, so that no static TLS surplus takes it.
__thread int plugin_room[5000];
__thread int plugin_local = -1;

void plugin_set(int value) {
    plugin_room[4999] = value;
    plugin_local = value;
}
