// The plug-in's own function around counter.c.
int next_count(void);
int count_of_plug_in(void) { return next_count(); }
